"""Rules of this repository that a linter does not know, and the documentation run as a program."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core" / "dellm"
LANGCHAIN = ROOT / "dellm_langchain"
LLAMAINDEX = ROOT / "dellm_llamaindex"
MODULES = sorted(path for one in (CORE, LANGCHAIN, LLAMAINDEX) for path in one.rglob("*.py"))
# Names that say nothing of what is inside.
VAGUE = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "base",
    "manager",
    "managers",
    "misc",
    "tools",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, Function):
            yield node


def length(function: Function) -> int:
    """Return the lines of a function's body, docstring and decorators left out."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [named(path) for path in MODULES if set(path.stem.split("_")) & VAGUE] == []


def test_modules_are_short() -> None:
    long = {named(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: lines for name, lines in long.items() if lines > 420} == {}


def test_half_of_all_functions_are_under_twelve_lines() -> None:
    for package, least in ((CORE, 300), (LANGCHAIN, 150), (LLAMAINDEX, 150)):
        lengths = [length(one) for path in package.rglob("*.py") for one in functions(path)]
        assert len(lengths) > least
        assert statistics.median(lengths) < 12


def public(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Yield the public functions, classes and methods of a module."""
    if any(part.startswith("_") and part != "__init__.py" for part in path.parts[-2:]):
        return
    for node in parsed(path).body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        yield node.name, node
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, Function) and not inner.name.startswith("_"):
                    yield f"{node.name}.{inner.name}", inner


# What these methods do is said once, at the protocols in database.py that they implement.
SAID_AT_THE_PROTOCOL = {"sqlite.py", "postgres.py"}


def test_everything_public_says_what_it_does() -> None:
    silent = [
        f"{named(path)}: {name}"
        for path in MODULES
        for name, node in public(path)
        if ast.get_docstring(node) is None
        and not (path.name in SAID_AT_THE_PROTOCOL and "." in name)
    ]
    assert silent == []
    assert [named(path) for path in MODULES if ast.get_docstring(parsed(path)) is None] == []


PROGRAMS = {"demo.py"}  # run with python -m, and for nothing but their output


def test_nothing_is_printed_but_by_the_command_line() -> None:
    found = [
        f"{named(path)}:{node.lineno}"
        for path in MODULES
        if path.name not in PROGRAMS
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"print", "breakpoint", "pprint"}
    ]
    assert found == []


def test_nothing_is_left_to_be_done() -> None:
    found = []
    for path in MODULES:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        # What another library has not implemented may be caught.
        caught = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.ExceptHandler) and node.type is not None
            for inner in ast.walk(node.type)
        }
        found += [
            f"{named(path)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Name)
            and node.id == "NotImplementedError"
            and id(node) not in caught
        ]
        with tokenize.open(path) as file:
            found += [
                f"{named(path)}:{token.start[0]}"
                for token in tokenize.generate_tokens(file.readline)
                if token.type == tokenize.COMMENT
                and re.search(r"\b(TODO|FIXME|XXX|HACK)\b", token.string)
            ]
    assert found == []


def is_empty(function: Function) -> bool:
    if function.decorator_list:  # a declaration to a framework, such as a callback of the program
        return False
    if function.name.startswith("_") and ast.get_docstring(function):  # does nothing, and says why
        return False
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return all(
        isinstance(one, ast.Pass)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in body
    )


def test_no_function_is_empty_outside_a_protocol() -> None:
    found = []
    for path in MODULES:
        tree = ast.parse(path.read_text("utf-8"))
        protocols = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            and any("Protocol" in ast.unparse(one) for one in node.bases)
            for inner in ast.walk(node)
        }
        found += [
            f"{named(path)}: {one.name}"
            for one in ast.walk(tree)
            if isinstance(one, Function) and is_empty(one) and id(one) not in protocols
        ]
    assert found == []


def test_only_the_two_database_modules_know_a_driver() -> None:
    drivers = {"apsw", "psycopg", "psycopg_pool", "pgvector", "sqlite3"}
    allowed = {"sqlite.py", "sqlite_clean.py", "postgres.py", "postgres_clean.py"}
    allowed |= {"postgres_session.py", "postgres_setup.py"}
    # These read the databases of other programs, and never ours.
    allowed |= {"adopt_databases.py", "adopt_sources.py"}
    found = [
        f"{named(path)}: {name}"
        for path in MODULES
        if path.name not in allowed
        for name in imported(path)
        if name.partition(".")[0] in drivers
    ]
    assert found == []


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_every_statement_names_its_workspace() -> None:
    """A statement on a table with workspaces filters by ws, or is one of the few listed here."""
    tables = (
        "record|embedding|sequence|edge|tombstone|ledger|residue|repeat|keyword|"
        "line|label|checkpoint|task_write|ended|item|item_vector|elsewhere|hidden|"
        "fact|fact_end|fact_key|fact_seen|fact_refused|"
        "outsider|exposure|rebuild_job|rebuild_source|guard|governed|concerns|hold|hold_record|hold_wait|audience"
    )
    touching = re.compile(rf"\b(?:from|into|update|join)\s+(?:{tables})\b", re.IGNORECASE)
    without = [
        f"{named(path)}:{node.lineno}"
        for path in MODULES
        if path.name not in {"sqlite.py", "sqlite_clean.py", "postgres.py", "postgres_clean.py"}
        for node in ast.walk(parsed(path))
        if (sql := _literal(node)) is not None
        and re.match(r"\s*(select|insert|update|delete|with)\b", sql)
        and touching.search(sql)
        and ":ws" not in sql
        and "ws" not in sql
    ]
    assert without == []


def _literal(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(one.value for one in node.values if isinstance(one, ast.Constant))
    return None


def test_importing_the_library_loads_nothing_heavy() -> None:
    heavy = {
        "torch",
        "openai",
        "psycopg",
        "rustworkx",
        "phonenumbers",
        "dateparser",
        "typer",
        "rich",
        "langchain_core",
        "langgraph",
        "dellm_langchain",
        "dellm_llamaindex",
        "llama_index",
    }
    code = "import sys, dellm; print(' '.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert heavy & set(done.stdout.split()) == set()


# the documentation

SNIPPET = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if page.exists()
]


def snippets(page: Path) -> list[str]:
    return [found[1] for found in SNIPPET.finditer(page.read_text("utf-8"))]


def test_snippets_are_found() -> None:
    assert SNIPPET.findall(
        "text\n```python\na = 1\n```\nmore\n```sh\nls\n```\n```python\nb\n```"
    ) == [
        "a = 1\n",
        "b\n",
    ]
    assert any(snippets(page) for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_python_of_the_documentation_runs_as_it_stands(page: Path, tmp_path: Path) -> None:
    """All blocks of a page, in order, as one program in an empty folder, warnings as errors.

    But for deprecations, as in the tests: frameworks have those among themselves.
    """
    blocks = snippets(page)
    if not blocks:
        assert "```python" not in page.read_text("utf-8")
        return
    program = tmp_path / "page.py"
    program.write_text("\n\n".join(blocks), "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "default::DeprecationWarning", program.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{named(page)}\n{done.stdout[-2_000:]}\n{done.stderr[-4_000:]}"


def test_the_documentation_names_only_files_that_are_there() -> None:
    missing = [
        f"{named(page)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert missing == []


def commands() -> list[str]:
    """Return every command of the command line, groups spelled out ("models install")."""
    cli = pytest.importorskip("dellm.cli")
    import typer.main

    def walk(command: object, prefix: str) -> Iterator[str]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield prefix
            return
        for name, one in inner.items():
            if not one.hidden:
                yield from walk(one, f"{prefix} {name}".strip())

    return sorted(walk(typer.main.get_command(cli.app), ""))


def test_every_command_is_in_the_documentation() -> None:
    page = ROOT / "docs" / "cli.md"
    if not page.exists():
        pytest.skip("docs/cli.md is not written yet")
    said = page.read_text("utf-8") + (ROOT / "README.md").read_text("utf-8")
    found = commands()
    assert len(found) > 5
    assert [one for one in found if not re.search(rf"\bdellm {re.escape(one)}\b", said)] == []
