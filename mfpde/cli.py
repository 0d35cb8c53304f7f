"""The command line: `mfpde cases | run | compare | converge | info`.

Exit codes: 0 ok, 2 wrong usage or input, 3 numerical failure, 130 interrupted.
"""

from __future__ import annotations

import ast
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mfpde import __version__


class ErrorsAsMessages(TyperGroup):
    """The package's errors become one message and an exit code, whichever command raised them."""

    def invoke(self, ctx: Any) -> Any:
        from mfpde.errors import InputError, NumericalError

        try:
            return super().invoke(ctx)
        except (InputError, NumericalError) as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2 if isinstance(error, InputError) else 3) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(cls=ErrorsAsMessages, add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False, help="The mean-field transformer equation in low dimension.")

CaseName = Annotated[str, typer.Argument(metavar="CASE", help="A name from `mfpde cases`.")]
Overrides = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Keywords of the case, e.g. beta=50 cells=2048.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


def keywords(pairs: list[str] | None) -> dict[str, Any]:
    """`key=value` words as a dictionary; values are Python literals, anything else is a string."""
    from mfpde.errors import InputError

    parsed: dict[str, Any] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise InputError(f"An override has the form key=value.\n  Given: {pair!r}\n  For example beta=50.")
        if key in parsed:
            raise InputError(f"{key} is given twice.\n  Given: {pairs}")
        try:
            parsed[key] = float(value) if value in ("inf", "nan") else ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parsed[key] = value
    return parsed


@app.command()
def cases() -> None:
    """List the named cases with their keywords."""
    import inspect

    from mfpde.cases import names

    for name, case in sorted(names().items()):
        parameters = " ".join(f"{key}={parameter.default}" for key, parameter in inspect.signature(case).parameters.items())
        typer.echo(f"{name:<18}{(inspect.getdoc(case) or '').splitlines()[0]}\n{'':<18}{parameters}")


@app.command()
def run(
    case: CaseName,
    overrides: Overrides = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Folder of the run; runs/CASE-001 and so on when not given.")] = None,
    quiet: Quiet = False,
) -> None:
    """Solve a case by all sibling methods, compare them, and fill a folder with data, tables and pictures."""
    from mfpde import runs
    from mfpde.cases import build
    from mfpde.progress import reporter

    given = keywords(overrides)
    problem, method = build(case, **given)
    folder = runs.fresh_folder(case, output)
    with reporter(not quiet, 1.0, case) as report:
        _, text = runs.run(case, given, problem, method, folder, report=report)
    if not quiet:
        typer.echo(text)
        typer.echo(f"\nSaved in {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


@app.command()
def compare(case: CaseName, overrides: Overrides = None, quiet: Quiet = False) -> None:
    """Solve a case by all sibling methods and print their distances, without writing anything."""
    import numpy as np

    from mfpde import runs
    from mfpde.cases import build
    from mfpde.comparison import compare as compare_methods
    from mfpde.comparison import siblings
    from mfpde.progress import reporter

    problem, method = build(case, **keywords(overrides))
    with reporter(not quiet, 1.0, case) as report:
        comparison = compare_methods(problem, siblings(problem, method), np.linspace(0, problem.t_end, runs.OUTPUTS), report=report)
    typer.echo(runs.summary(comparison))


@app.command()
def converge(
    case: CaseName,
    overrides: Overrides = None,
    levels: Annotated[str, typer.Option(help="Numbers of cells, comma separated.")] = "128,256,512,1024",
) -> None:
    """Refine the method of a case and print observed orders, against the exact law where one is known, else against itself."""
    from mfpde.cases import build, exact_law
    from mfpde.convergence import converge as refine
    from mfpde.errors import InputError

    given = keywords(overrides)
    problem, method = build(case, **given)
    try:
        cells = [int(level) for level in levels.split(",")]
    except ValueError:
        raise InputError(f"levels are whole numbers, comma separated.\n  levels = {levels!r}") from None
    typer.echo(repr(refine(problem, method, cells, reference=exact_law(case, problem) or "self")))


@app.command()
def info() -> None:
    """Versions of the package and of what it stands on."""
    import platform
    from importlib.metadata import version

    typer.echo(f"mfpde {__version__}, Python {platform.python_version()}, {platform.platform()}")
    for package in ("numpy", "scipy", "numba", "ducc0", "fipy", "pot", "matplotlib"):
        typer.echo(f"  {package} {version(package)}")


main = app
