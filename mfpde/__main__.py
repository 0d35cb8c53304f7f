"""`python -m mfpde` is the command line."""

from __future__ import annotations

from mfpde.cli import main

if __name__ == "__main__":
    main(prog_name="mfpde")
