"""The text of run files: `key=value` words and TOML to nested tables of numbers, texts and lists, and back with every bit."""

from __future__ import annotations

import ast
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mfpde.errors import InputError, unknown_name

NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, or an `InputError`."""
    try:
        return plain(tomllib.loads(path.read_bytes().decode()))
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, not TOML, a null byte in the name
        raise InputError(f"{path} cannot be read as a run file.\n  {type(error).__name__}: {error}") from None
    except RecursionError:
        raise InputError(f"{path} cannot be read as a run file.\n  It is nested too deeply.") from None


def parse(pairs: Iterable[str]) -> dict[str, Any]:
    """`key=value` words as a dictionary; values are Python literals, anything else is a string.

    >>> parse(["beta=50", "methods.pde.cells=64", "spectrum=complex"])
    {'beta': 50, 'methods.pde.cells': 64, 'spectrum': 'complex'}
    """
    parsed: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not all(NAME.fullmatch(part) for part in key.split(".")):
            raise InputError(f"An override has the form key=value.\n  Given: {pair!r}\n  For example beta=50 or output.times=11.")
        if key in parsed:
            raise InputError(f"{key} is given twice.\n  Given: {list(pairs)}")
        parsed[key] = literal(value)
    return parsed


def literal(text: str) -> Any:
    """A Python literal, `inf`, `nan`, `true` or `false`, else the text itself."""
    words = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan, "true": True, "false": False}
    if text in words:
        return words[text]
    try:
        return plain(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, InputError):
        return text


def plain(value: Any) -> Any:
    """Numbers, texts, lists and tables; tuples become lists. `InputError` for anything else."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(item) for key, item in value.items()}
    raise InputError(f"A run is described by numbers, texts, lists and tables.\n  Given: {value!r}")


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Dotted keys and values of nested tables."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def to_toml(value: Any) -> str:
    """A value in TOML; floats keep every bit."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(to_toml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {to_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if NAME.fullmatch(key) else json.dumps(key)


def tables(path: tuple[str, ...], values: Mapping[str, Any]) -> list[str]:
    """The lines of a TOML file."""
    lines = [f"[{'.'.join(map(_key, path))}]"] if path and not all(isinstance(value, dict) for value in values.values()) else []
    lines += [f"{_key(key)} = {to_toml(value)}" for key, value in values.items() if not isinstance(value, dict)]
    for key, value in values.items():
        if isinstance(value, dict):
            lines += ["", *tables((*path, key), value)]
    return lines


# ---- checking what was read ------------------------------------------------------------------------------------------------------------


def only_known(where: str, table: Any, known: Iterable[str]) -> None:
    """An `InputError` that names the nearest right key for the first unknown one."""
    if not isinstance(table, dict):
        raise InputError(f"{where} is a table.\n  Given: {table!r}")
    for key in table:
        if key not in known:
            raise unknown_name(f"key of {where}", key, known)


def number(name: str, value: Any) -> float:
    """`value` as a float, if it is a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{name} is a number.\n  {name} = {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name} is too large for a double.\n  It has {len(str(value)) if value < 10**4000 else 'thousands of'} digits.") from None
