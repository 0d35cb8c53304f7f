"""The command line: `mfpde cases | run | resume | compare | converge | validate | sweep | report | animate | export | info`.

Exit codes: 0 ok, 1 a claim failed, 2 wrong usage or input, 3 numerical failure, 130 interrupted.
"""

from __future__ import annotations

import errno
from typing import Annotated, Any, NoReturn

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
            self._end(f"error: {error}", 2 if isinstance(error, InputError) else 3)
        except MemoryError as error:
            self._end(f"error: There is not enough memory for this.\n  {error}\n  Ask for fewer cells, tokens or output times.", 2)
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever reads our output has had enough
                raise
            self._end(f"error: A file could not be read or written.\n  {type(error).__name__}: {error}", 2)
        except KeyboardInterrupt as error:
            self._end(str(error) or "interrupted", 130)

    @staticmethod
    def _end(message: str, code: int) -> NoReturn:
        typer.echo(message, err=True)
        raise typer.Exit(code) from None


app = typer.Typer(
    cls=ErrorsAsMessages,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="The mean-field transformer equation in low dimension.",
)

CaseName = Annotated[str, typer.Argument(metavar="CASE", help="A name from `mfpde cases`.")]
Source = Annotated[str, typer.Argument(metavar="CASE|FILE.toml", help="A name from `mfpde cases`, or a run file.")]
Overrides = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Values of the configuration, e.g. beta=50 cells=2048 output.times=11.")]
Folder = Annotated[str, typer.Argument(metavar="DIR", help="A run folder.")]
Output = Annotated[str | None, typer.Option("--output", "-o", help="Folder to make; runs/NAME-001 and so on when not given.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Progress = Annotated[str, typer.Option("--progress", help="auto (a bar on a terminal, else lines), json (one object a line, on the error stream) or none.")]
LONG_RUN = 10.0  # seconds from which on a run announces its cost before it starts


def progress_of(progress: str, quiet: bool) -> bool | str:
    """What `mfpde.progress.reporter` takes."""
    from mfpde.errors import unknown_name

    kinds: dict[str, bool | str] = {"auto": True, "json": "json", "none": False}
    if progress not in kinds:
        raise unknown_name("kind of progress", progress, kinds)
    return kinds[progress] if not quiet else False


@app.command()
def cases() -> None:
    """List the named cases with their keywords."""
    import inspect

    from mfpde.cases import names

    for name, case in sorted(names().items()):
        parameters = " ".join(f"{key}={parameter.default}" for key, parameter in inspect.signature(case).parameters.items())
        typer.echo(f"{name:<18}{(inspect.getdoc(case) or '').splitlines()[0]}\n{'':<18}{parameters}")


@app.command()
def run(source: Source, overrides: Overrides = None, output: Output = None, quiet: Quiet = False, progress: Progress = "auto") -> None:
    """Solve a case or a run file by all its methods, compare them, and fill a folder with data, tables and pictures."""
    from mfpde.progress import announce, reporter

    shown = progress_of(progress, quiet)
    with reporter(shown, 1.0, source) as report:  # from the first second on: loading the package may take as long
        from mfpde.runs import experiment
        from mfpde.runs.config import resolve

        config = resolve(source, overrides or [])
        folder = experiment.fresh_folder(config.name, output)
        report(0.0, "preparing")
        plan = experiment.prepare(config)
        if shown:
            report(0.0, "estimating the cost")
            costs = experiment.estimate(plan)
            if sum(cost.seconds for cost in costs.values()) >= LONG_RUN:
                announce(shown, "cost at the pace of the first steps", **costs)
        _, text = experiment.run(plan, folder, report=report)
    _conclude(folder, text, quiet, shown)


@app.command()
def resume(folder: Folder, quiet: Quiet = False, progress: Progress = "auto") -> None:
    """Go on with an interrupted or killed run, bit for bit; a finished one is only shown."""
    from mfpde.progress import reporter

    shown = progress_of(progress, quiet)
    with reporter(shown, 1.0, folder) as report:
        from mfpde.runs import experiment

        run_folder = experiment.RunFolder.open(folder)
        config = run_folder.config()
        if run_folder.record["state"] == "done":
            typer.echo(f"{folder} is finished.")
            return
        report(0.0, "preparing")
        _, text = experiment.resume(run_folder, experiment.prepare(config), report=report)
    _conclude(run_folder.path, text, quiet, shown)


def _conclude(folder: Any, text: str, quiet: bool, shown: bool | str) -> None:
    from mfpde.progress import announce

    if shown == "json":
        announce(shown, "done", folder=str(folder))
    if not quiet:
        typer.echo(text)
        typer.echo(f"\nSaved in {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


@app.command()
def compare(source: Source, overrides: Overrides = None, quiet: Quiet = False, progress: Progress = "auto") -> None:
    """Solve a case or a run file by all its methods and print their distances, without writing anything."""
    from mfpde.progress import reporter

    with reporter(progress_of(progress, quiet), 1.0, source) as report:
        from mfpde.comparison import compare as compare_methods
        from mfpde.runs.config import resolve
        from mfpde.runs.summary import summary

        config = resolve(source, overrides or [])
        comparison = compare_methods(config.problem(), config.methods(), config.times(), report=report)
    typer.echo(summary(comparison))


@app.command()
def converge(
    case: CaseName,
    overrides: Overrides = None,
    levels: Annotated[str | None, typer.Option(help="Numbers of cells, comma separated.")] = None,
) -> None:
    """Refine the method of a case and print observed orders, against the exact law where one is known, else against itself."""
    from mfpde.cases import build, exact_law
    from mfpde.convergence import converge as refine
    from mfpde.errors import InputError
    from mfpde.runs.runfile import parse

    given = parse(overrides or [])
    problem, method = build(case, **given)
    levels = levels or ("128,256,512,1024" if problem.geometry.dim == 2 else "162,642,2562")
    try:
        cells = [int(level) for level in levels.split(",")]
    except ValueError:
        raise InputError(f"levels are whole numbers, comma separated.\n  levels = {levels!r}") from None
    typer.echo(repr(refine(problem, method, cells, reference=exact_law(case, problem) or "self")))


@app.command()
def validate(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME ...]", help="Claims to run, folders of validation/; all when not given.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The version of each claim that takes seconds.")] = False,
    jobs: Annotated[int, typer.Option(help="Claims that run at the same time.")] = 1,
    report: Annotated[str, typer.Option(help="The page to write; it needs nothing beside it.")] = "report.html",
    keep: Annotated[str | None, typer.Option(help="Also write the records and figures into this folder, e.g. docs/results.")] = None,
) -> None:
    """Confront the theory with numbers: run the claims of the source tree; exit code 1 if one fails."""
    import time as clock
    from pathlib import Path

    from mfpde.claims import suite
    from mfpde.claims.page import page

    claims = suite.find_claims()
    started, wanted = clock.monotonic(), suite.chosen(claims, names or [])

    def tell(done: int, outcome: suite.Outcome) -> None:
        verdict = "holds" if outcome.holds else "FAILS"
        typer.echo(f"[{done:2d}/{len(wanted)}] {verdict}  {outcome.name}, {len(outcome.verdicts)} numbers, {outcome.seconds:.1f} s", err=True)
        if keep:  # at once: an interruption loses nothing that is finished
            suite.keep([outcome], Path(keep))

    outcomes = suite.validate(claims, wanted, quick=quick, jobs=jobs, report=tell)
    Path(report).write_text(page(outcomes, quick=quick, seconds=clock.monotonic() - started))
    typer.echo(suite.table(outcomes))
    typer.echo(f"\n{sum(o.holds for o in outcomes)} of {len(outcomes)} hold, {clock.monotonic() - started:.0f} s; the report is in {report}")
    for outcome in outcomes:
        if not outcome.holds and not outcome.verdicts:
            typer.echo(f"\n{outcome.name} printed:\n{outcome.output[-2000:]}", err=True)
    if not all(o.holds for o in outcomes):
        raise typer.Exit(1)


@app.command()
def sweep(
    source: Source,
    axes: Annotated[list[str], typer.Argument(metavar="KEY=VALUES ...", help="beta=10:1000:log7, t_end=1:2:lin5, cells=64,128; a single value is fixed.")],
    output: Output = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Worker processes of a local cluster.")] = 1,
    scheduler: Annotated[str | None, typer.Option(help="Address of a running dask scheduler, e.g. tcp://host:8786, instead of a local cluster.")] = None,
    netcdf: Annotated[bool, typer.Option("--netcdf", help='Also write table.nc (extra "io").')] = False,
    quiet: Quiet = False,
    progress: Progress = "auto",
) -> None:
    """Run many points and fill one table; the same command again goes on where it was (extra "sweep")."""
    from pathlib import Path

    from mfpde.progress import reporter

    with reporter(progress_of(progress, quiet), 1.0, "sweep") as report:
        from mfpde.runs import sweep as sweeps

        planned = sweeps.parse_sweep(source, axes)
        folder = Path(output) if output is not None else Path("runs") / f"{Path(source).stem}-sweep"
        rows, failures = sweeps.run_sweep(planned, folder, jobs=jobs, scheduler=scheduler, report=report)
    if netcdf:
        sweeps.save_netcdf(rows, planned.axes, folder / "table.nc")
    for failure in failures:
        typer.echo(failure, err=True)
    if not quiet:
        typer.echo(f"{len(rows) - len(failures)} of {len(rows)} points in {folder / 'table.csv'}")


@app.command()
def report(folder: Folder, output: Output = None) -> None:
    """One self-contained HTML page about a run, DIR/report.html when no other name is given (extra "report")."""
    from mfpde.runs import report as pages

    typer.echo(pages.write(folder, output))


@app.command()
def animate(
    folder: Folder,
    output: Output = None,
    method: Annotated[str | None, typer.Option(help="Which trajectory; the first one when not given.")] = None,
    seconds: Annotated[float, typer.Option(help="Length of the film.")] = 6.0,
) -> None:
    """A film of a run: .gif, or .mp4 where ffmpeg is installed; DIR/NAME.gif when no other name is given."""
    from mfpde.runs import animation

    typer.echo(animation.write(folder, output, method=method, seconds=seconds))


@app.command()
def export(
    folder: Folder,
    output: Output = None,
    form: Annotated[str, typer.Option("--format", help='nc: NetCDF, one file a method (extra "io"); csv: the observables in one table.')] = "nc",
) -> None:
    """The trajectories of a run for other programs, beside those in DIR when no other name is given."""
    from mfpde.runs import experiment

    for path in experiment.export(folder, output, form):
        typer.echo(path)


@app.command()
def info(
    source: Annotated[str | None, typer.Argument(metavar="[CASE|FILE.toml|DIR]", help="What to tell about; the package itself when not given.")] = None,
    overrides: Overrides = None,
    show_config: Annotated[bool, typer.Option("--show-config", help="Every value of the configuration, with its origin.")] = False,
    cite: Annotated[bool, typer.Option("--cite", help="What to cite, as BibTeX.")] = False,
) -> None:
    """Versions; or the configuration of a case or run file; or what to cite for it."""
    from pathlib import Path

    from mfpde.citations import citation
    from mfpde.errors import InputError
    from mfpde.runs.config import resolve

    if source is not None and (Path(source) / "run.toml").is_file():
        source = str(Path(source) / "run.toml")
    config = resolve(source, overrides or []) if source is not None else None
    if cite:
        methods = list(config.methods().values()) if config else []
        typer.echo(citation(config.problem() if config else None, *methods).bibtex)
    elif config is not None:
        typer.echo(config.show())
    elif show_config:
        raise InputError("Whose configuration?\n  For example: mfpde info --show-config concentration beta=50")
    else:
        _versions()


def _versions() -> None:
    import platform

    from mfpde.storage.provenance import commit, versions

    typer.echo(f"mfpde {__version__}, Python {platform.python_version()}, {platform.platform()}")
    for package, version in list(versions().items())[1:]:
        typer.echo(f"  {package} {version}")
    if commit():
        typer.echo(f"  commit {commit()}")


main = app
