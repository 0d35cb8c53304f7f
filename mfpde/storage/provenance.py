"""Where a result comes from: versions, machine, threads, command, commit. Nothing of the environment but the variables that set threads."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time as clock
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("mfpde", "numpy", "scipy", "numba", "ducc0", "fipy", "pot", "matplotlib")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def provenance() -> dict[str, Any]:
    """What it takes to repeat a run, beside its configuration."""
    return {
        "command": sys.argv,
        "versions": versions(),
        "commit": commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ} | numba_threads(),
        "date": clock.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def versions() -> dict[str, str]:
    """Versions of the package and of what it stands on; an uninstalled source tree gives its own version."""
    from mfpde import __version__

    found = {"mfpde": __version__}
    for package in PACKAGES[1:]:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def numba_threads() -> dict[str, int]:
    """Threads of the compiled kernels, if any kernel is loaded."""
    numba = sys.modules.get("numba")
    return {"numba": numba.get_num_threads()} if numba is not None else {}


@cache
def commit() -> str | None:
    """The git commit of the package's source with "+ changes" where files differ; None outside a repository or without git."""
    home = Path(__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(home), *words], capture_output=True, text=True, timeout=5, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # a site-packages folder inside somebody's repository is not ours
        return git("rev-parse", "HEAD") + (" + changes" if git("status", "--porcelain", "--untracked-files=no", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None
