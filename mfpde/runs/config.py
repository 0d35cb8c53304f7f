"""Run files: what `mfpde run CASE|FILE.toml [key=value ...]` means, value by value, and where each value comes from.

A run file names a case and its keywords, or describes any problem:

    t_end = 10.0                     case = "concentration"
    geometry = "circle"
                                     [keywords]
    [attention]                      beta = 50.0
    beta = 50.0
    V = [[1.0, 0.5], [0.0, 0.2]]

    [initial]
    law = "von_mises_mixture"
    angles = [0.0, 2.0]
    kappa = 4.0

    [methods.pde]                    what `mfpde.comparison.siblings` says when there is no table of methods
    method = "FiniteVolume"
    cells = 1024

    [output]
    times = 61                       how many, start and end included, or a list of times
    spacing = "linear"               equal steps of t; "log", where clusters live exponentially long: 0, then equal steps of ln t

Instead of Q, K, V, the table `attention` may give `weights`, a file `.npz` with W_Q, W_K, W_V or `.npy` of shape (3, d, d), or W_Q, W_K, W_V
themselves, as matrices or as `.npy` files. A resolved configuration holds every value, matrices included, so it can be run anywhere.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mfpde
from mfpde import cases, diagnostics, initial
from mfpde.comparison import siblings
from mfpde.errors import InputError, unknown_name
from mfpde.geometry import Geometry
from mfpde.methods.base import Method
from mfpde.model import Attention, Problem
from mfpde.runs.output import instants, resolve_output
from mfpde.runs.runfile import NAME, leaves, number, only_known, parse, read_toml, tables, to_toml
from mfpde.runs.weights import matrix, read_weights

GEOMETRIES: dict[str, type[Geometry]] = {kind.__name__.lower(): kind for kind in Geometry.__subclasses__()}
METHODS = ("FiniteVolume", "Particles", "Lagrangian", "ZeroTemperature", "Clusters", "Handover", "FiPyUpwind")
LAWS = ("uniform", "von_mises_mixture", "fisher_mixture", "poisson", "fourier", "atoms")
OF_CASE = "case"  # methods.NAME.method = "case": the method that comes with the case
WEIGHTS = ("W_Q", "W_K", "W_V")
MATRICES = ("Q", "K", "V")
RESERVED = ("limit", "run", "distances", "observables")


@dataclass(frozen=True)
class Config:
    """A resolved configuration: nested `values`, and for each dotted key where the value comes from.

    Examples
    --------
    >>> config = resolve("poisson", ["r=0.5", "output.times=3"])
    >>> config.values["keywords"]["r"], config.origins["keywords.r"], config.origins["keywords.cells"]
    (0.5, 'command line', 'case poisson')
    >>> config.times().tolist()
    [0.0, 1.0, 2.0]
    """

    name: str
    values: dict[str, Any]
    origins: dict[str, str]

    # ---- what it describes -----------------------------------------------------------------------------------------------------------

    def problem(self) -> Problem:
        """The problem; `InputError` if it makes no sense."""
        return self._case()[0]

    def methods(self) -> dict[str, Method]:
        """The methods by name, in order."""
        _, of_case = self._case()
        return {name: _method(f"methods.{name}", table, of_case) for name, table in self.values["methods"].items()}

    def times(self) -> np.ndarray:
        """The output times (k,)."""
        return instants(self.values["output"], self.problem().t_end)

    def observers(self) -> dict[str, Callable[..., Any]]:
        """The observers by name."""
        return {name: getattr(diagnostics, name) for name in self.values["output"]["observe"]}

    @property
    def checkpoint_every(self) -> float:
        """Seconds of wall-clock time between checkpoints."""
        return float(self.values["output"]["checkpoint_every"])

    def _case(self) -> tuple[Problem, Method]:
        if "case" in self.values:
            return cases.build(self.values["case"], **self.values["keywords"])
        return _problem(self.values), mfpde.FiniteVolume()

    # ---- how it reads ----------------------------------------------------------------------------------------------------------------

    @property
    def hash(self) -> str:
        """SHA-256 of the values."""
        return hash_of(self.values)

    def toml(self) -> str:
        """The values as a run file, which resolves to the same values."""
        return "\n".join(tables((), self.values)) + "\n"

    def show(self) -> str:
        """One line a value, with its origin; methods also as Python."""
        lines = [(f"{path} = {to_toml(value)}", self.origins.get(path, "default")) for path, value in leaves(self.values)]
        width = min(60, max(len(text) for text, _ in lines))
        shown = [f"{text:<{width}}  # {origin}" for text, origin in lines]
        return "\n".join(
            [*shown, "", *(f"# {name}: {method!r}" for name, method in self.methods().items()), f"# {self.problem()!r}", f"# hash {self.hash[:16]}"]
        )

    def __repr__(self) -> str:
        return self.show()


def hash_of(values: dict[str, Any]) -> str:
    """SHA-256 of nested values; the order of keys does not matter, every bit of a number does."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def resolve(source: str, overrides: Iterable[str] = ()) -> Config:
    """The configuration of a case or a run file with `key=value` overrides: defaults < file < overrides.

    Raises `InputError` for unknown keys, with the nearest right one, and for anything a problem, a method or `solve` would refuse.
    """
    given, origins, base = _read(source)
    named = given.get("methods")
    complete = isinstance(named, dict) and any("method" in table for table in named.values() if isinstance(table, dict))
    for key, value in parse(overrides).items():
        _set(given, origins, key, value)
    values: dict[str, Any] = {}
    only_known("a run file", given, ["case", "keywords", "methods", "output", "only", "t_end", "geometry", "attention", "initial"])
    if "case" in given:
        _resolve_case(given, values, origins)
    else:
        _resolve_problem(given, values, origins, base)
    with np.errstate(all="ignore"):
        problem = Config("", values, {}).problem()
        _resolve_methods(given, values, origins, complete)
        config = Config(values["case"] if "case" in values and not source.endswith(".toml") else Path(source).stem, values, origins)
        values["output"] = resolve_output(given.get("output", {}), problem, config.methods().values())
        for key in values["output"]:
            origins.setdefault(f"output.{key}", "default")
    return config


def _read(source: str) -> tuple[dict[str, Any], dict[str, str], Path]:
    """`(values, origins, folder that paths are relative to)` of a case or a file."""
    if not source.endswith(".toml"):
        if source not in cases.names() and ("/" in source or "." in source):
            raise InputError(f"A run is a case or a file that ends with .toml.\n  Given: {source!r}\n  Cases: {', '.join(sorted(cases.names()))}.")
        return {"case": source}, {"case": "command line"}, Path()
    given = read_toml(Path(source))
    return given, {path: source for path, _ in leaves(given)}, Path(source).parent


def _set(given: dict[str, Any], origins: dict[str, str], key: str, value: Any) -> None:
    """Put an override into its place: a key without dots is a keyword of the case, where there is one."""
    parts = key.split(".")
    if len(parts) == 1 and "case" in given and key not in ("case", "only"):
        parts = ["keywords", key]
    table = given
    for part in parts[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise InputError(f"{key} cannot be set.\n  {part} is a value, not a table.")
    table[parts[-1]] = value
    for path, _ in leaves({parts[-1]: value}):
        origins[".".join([*parts[:-1], path])] = "command line"


# ---- resolving -----------------------------------------------------------------------------------------------------------------------


def _resolve_case(given: dict[str, Any], values: dict[str, Any], origins: dict[str, str]) -> None:
    only_known("a run file with a case", given, ["case", "keywords", "methods", "output", "only"])
    name, keywords = given["case"], given.get("keywords", {})
    known = cases.names()
    if not isinstance(name, str) or name not in known:
        raise unknown_name("case", str(name), known)
    parameters = inspect.signature(known[name]).parameters
    if not isinstance(keywords, dict):
        raise InputError(f"keywords is a table.\n  Given: {keywords!r}")
    for key, value in keywords.items():
        if key not in parameters:
            raise unknown_name(f"keyword of {name}", key, parameters)
        keywords[key] = _number_like(f"{key} of {name}", value, parameters[key].default)
    values["case"] = name
    values["keywords"] = {key: keywords.get(key, parameter.default) for key, parameter in parameters.items()}
    for key in parameters:
        origins.setdefault(f"keywords.{key}", f"case {name}")


def _number_like(name: str, value: Any, default: Any) -> Any:
    """A whole number given for a float becomes one; everything else is left to the case to judge."""
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return number(name, value)
    return value


def _resolve_problem(given: dict[str, Any], values: dict[str, Any], origins: dict[str, str], base: Path) -> None:
    for key in ("t_end", "attention", "initial"):
        if key not in given:
            raise InputError(f"A run file names a case, or gives t_end, [attention] and [initial].\n  {key} is missing.\n  mfpde cases lists the cases.")
    if "keywords" in given:
        raise InputError("keywords belong to a case.\n  Give case = ... too, or leave the table out.")
    values["t_end"] = number("t_end", given["t_end"])
    geometry = given.get("geometry", "circle")
    if not isinstance(geometry, str) or geometry not in GEOMETRIES:
        raise unknown_name("geometry", str(geometry), GEOMETRIES)
    values["geometry"] = geometry
    values["attention"] = _attention(given["attention"], origins, base, GEOMETRIES[geometry].dim)
    values["initial"] = _initial(given["initial"])


def _attention(table: Any, origins: dict[str, str], base: Path, dim: int) -> dict[str, Any]:
    """beta and matrices as numbers; Q, K, V are the identity when not given."""
    only_known("attention", table, ["beta", "weights", *MATRICES, *WEIGHTS])
    if "beta" not in table:
        raise InputError("attention.beta is missing.\n  Give the inverse temperature, in [0, inf].")
    resolved: dict[str, Any] = {"beta": number("attention.beta", table["beta"])}
    by_weights = "weights" in table or any(name in table for name in WEIGHTS)
    if by_weights and any(name in table for name in MATRICES):
        raise InputError(f"Give Q, K, V, or the weights W_Q, W_K, W_V, not both.\n  Given: {', '.join(table)}")
    if "weights" in table:
        if any(name in table for name in WEIGHTS):
            raise InputError(f"Give a file of weights, or the weights, not both.\n  Given: {', '.join(table)}")
        origin = f"{table['weights']}, from {origins.pop('attention.weights', 'default')}"
        table = dict(zip(WEIGHTS, read_weights(base, table["weights"], WEIGHTS), strict=True))
        origins |= {f"attention.{name}": origin for name in WEIGHTS}
    for name in WEIGHTS if by_weights else MATRICES:
        given = table.get(name)
        if given is None and by_weights:
            raise InputError(f"attention.{name} is missing.\n  Give W_Q, W_K and W_V.")
        if isinstance(given, str):
            origins[f"attention.{name}"] = f"{given}, from {origins.get(f'attention.{name}', 'default')}"
            given = read_weights(base, given, (name,))[0]
        resolved[name] = np.eye(dim).tolist() if given is None else matrix(f"attention.{name}", given).tolist()
    return resolved


def _initial(table: Any) -> dict[str, Any]:
    """The name of a law and its parameters."""
    if not isinstance(table, dict) or not isinstance(table.get("law"), str):
        raise InputError(f"[initial] names its law.\n  Given: {table!r}\n  Laws: {', '.join(LAWS)}.")
    if table["law"] not in LAWS:
        raise unknown_name("law", table["law"], LAWS)
    only_known(f"the law {table['law']}", table, ["law", *law_parameters(table["law"])])
    return dict(table)


def law_parameters(law: str) -> dict[str, inspect.Parameter]:
    """The parameters of a named law, the geometry left out."""
    return {name: p for name, p in inspect.signature(getattr(initial, law)).parameters.items() if name != "geometry"}


def _problem(values: dict[str, Any]) -> Problem:
    geometry = GEOMETRIES[values["geometry"]]()
    head = values["attention"]
    if "W_Q" in head:
        attention = Attention.from_weights(head["W_Q"], head["W_K"], head["W_V"], head["beta"])
    else:
        attention = Attention(head["Q"], head["K"], head["V"], head["beta"])
    law = values["initial"]["law"]
    keywords = {key: value for key, value in values["initial"].items() if key != "law"}
    for name, parameter in law_parameters(law).items():
        if parameter.default is parameter.empty and name not in keywords:
            raise InputError(f"initial.{name} is missing.\n  The law {law} needs {', '.join(law_parameters(law))}.")
    if law == "fourier":
        keywords["coefficients"] = _complex(keywords["coefficients"])
    make = getattr(initial, law)
    try:
        start = make(geometry, **keywords) if "geometry" in inspect.signature(make).parameters else make(**keywords)
        return Problem(attention, geometry, start, values["t_end"])
    except (TypeError, ValueError, OverflowError, AttributeError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"The law {law} cannot be built from its parameters.\n  {keywords}\n  {type(error).__name__}: {error}") from None


def _complex(coefficients: Any) -> list[complex]:
    """A list of numbers or [real part, imaginary part] pairs."""
    try:
        return [complex(*item) if isinstance(item, list) else complex(item) for item in coefficients]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"initial.coefficients is a list of numbers or [real, imaginary] pairs.\n  Given: {coefficients!r}") from None


def _resolve_methods(given: dict[str, Any], values: dict[str, Any], origins: dict[str, str], complete: bool) -> None:
    """The methods of the file, if its table is `complete`, for it names some; else the siblings. Then the overrides."""
    problem, method = Config("", values, {})._case()
    chosen_tables = given.get("methods", {})
    if not isinstance(chosen_tables, dict):
        raise InputError(f"methods is a table.\n  Given: {chosen_tables!r}")
    defaults = {name: _as_table(sibling) for name, sibling in siblings(problem, method).items()}
    if "case" in values:
        defaults["pde"] = {"method": OF_CASE}
    names = list(chosen_tables) if complete else [*defaults, *(name for name in chosen_tables if name not in defaults)]
    only = given.get("only")
    if only is not None:
        chosen = only.split(",") if isinstance(only, str) else only
        if not isinstance(chosen, list) or not chosen:
            raise InputError(f"only is a list of methods.\n  only = {only!r}")
        for name in chosen:
            if name not in names:
                raise unknown_name("method in only", str(name), names)
        names = [name for name in names if name in chosen]
    if not names:
        raise InputError('There is no method to run.\n  Give one, e.g. [methods.pde] with method = "FiniteVolume".')
    values["methods"] = {}
    for name in names:
        if not NAME.fullmatch(name) or name in RESERVED:
            raise InputError(f"A method's name consists of letters, digits, - and _, and is not {', '.join(RESERVED)}.\n  Given: {name!r}")
        table = chosen_tables.get(name, {})
        where = f"methods.{name}"
        if not isinstance(table, dict):
            raise InputError(f"{where} is a table.\n  Given: {table!r}")
        default = defaults.get(name, {})
        if "method" not in table and not default:
            raise unknown_name("method", name, defaults) if not complete else InputError(f"{where}.method is missing.\n  Methods: {', '.join(METHODS)}.")
        kind = table.get("method", default.get("method"))
        if kind == default.get("method"):
            resolved = {**default, **table}
        else:
            resolved = {"method": kind, **{k: v for k, v in table.items() if k != "method"}}
        built = _method(where, resolved, method)
        values["methods"][name] = resolved if kind == OF_CASE else _as_table(built)
        for key in values["methods"][name]:
            origins.setdefault(f"{where}.{key}", "default")


def _as_table(method: Any) -> dict[str, Any]:
    """The table that describes a method; methods inside it are tables in the table."""
    fields = {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
    plain = {name: _as_table(value) if dataclasses.is_dataclass(value) else value for name, value in fields.items()}
    return {"method": type(method).__name__, **{name: value for name, value in plain.items() if value is not None}}


def _method(where: str, table: dict[str, Any], of_case: Method) -> Method:
    """The method a table describes."""
    kind = table["method"]
    given = {key: value for key, value in table.items() if key != "method"}
    if kind == OF_CASE:
        template: Any = type(of_case)
    elif kind in METHODS:
        template = getattr(mfpde, kind)
    else:
        raise unknown_name("method", str(kind), METHODS)
    fields = {field.name: field for field in dataclasses.fields(template)}
    only_known(f"{template.__name__} ({where})", given, fields)
    for key, value in given.items():
        inner = fields[key].default_factory
        if inner is not dataclasses.MISSING:  # a method inside the method
            if not isinstance(value, dict):
                raise InputError(f"{where}.{key} is a table that describes a method.\n  {where}.{key} = {value!r}")
            default = _as_table(inner())
            same = value.get("method", default["method"]) == default["method"]
            given[key] = _method(f"{where}.{key}", {**default, **value} if same else value, of_case)
        else:
            given[key] = _typed(f"{where}.{key}", value, str(fields[key].type))
    return dataclasses.replace(of_case, **given) if kind == OF_CASE else template(**given)  # type: ignore[type-var]


def _typed(name: str, value: Any, annotation: str) -> Any:
    """`value` as the annotated type: int, float, str, bool, or one of several."""
    wanted = [part.strip() for part in annotation.split("|")]
    if type(value).__name__ in wanted or not {"int", "float", "str", "bool"} & set(wanted):
        return value
    if "float" in wanted and isinstance(value, int) and not isinstance(value, bool):
        return number(name, value)
    raise InputError(f"{name} is of type {annotation}.\n  {name} = {value!r}")
