"""Which random faults of the library the quick tests notice, beside all tests: lines that are changed one at a time.

    python -m benchmarks.tests.mutants COVERAGE SECONDS --tree CLONE [--count 300] [--seed 1] [--part 0/2] --json FILE

Each mutant changes one operator, comparison, number, condition or statement of a line that some test runs, claims left
out. The quick tests that run this line are asked first, cheap ones before others. Where they pass, the thorough ones
are asked. Tests of claims are not, nor what takes longer than ``LONGEST`` CPU-seconds of quick or of thorough tests.
CLONE is a copy of the tree, which is changed and put back.
"""

import argparse
import ast
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.tests.choose import THOROUGH
from benchmarks.tests.covered import Lines, covered
from benchmarks.tests.seconds import read

LEFT_OUT = ("tests/claims", "tests/test_extras")
LONGEST = 100.0
MOST = 250
"""Tests of a tier that are asked about a mutant."""
COMPARISONS = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


class Mutant(NamedTuple):
    """A part of a file, and what stands there in its place."""

    file: str
    line: int
    start: int
    end: int
    text: str


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = COMPARISONS.get(type(node.ops[0]))
        if other:
            yield ast.Compare(node.left, [other()], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        value = node.value
        yield ast.Constant(not value if isinstance(value, bool) else value + 1)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Return) and node.value is not None:
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()


def mutants(root: Path, lines: Lines) -> list[Mutant]:
    """List all mutants of lines that tests run, in functions."""
    result = []
    for file in sorted(lines):
        text = (root / file).read_text("utf-8")
        run = set().union(*lines[file].values())
        starts = [0]
        for row in text.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(row))
        tree = ast.parse(text)
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.Lambda):
                continue
            for node in inside(function):
                if getattr(node, "lineno", None) not in run:
                    continue
                for other in changed(node):
                    start = starts[node.lineno - 1] + node.col_offset
                    end = starts[node.end_lineno - 1] + node.end_col_offset
                    written = ast.unparse(ast.fix_missing_locations(other))
                    is_part = isinstance(node, ast.expr)
                    written = f"({written})" if is_part else written
                    result.append(Mutant(file, node.lineno, start, end, written))
    return list(dict.fromkeys(result))


def inside(function: ast.AST) -> Iterator[ast.AST]:
    """Go through a function's statements, not its annotations, defaults, decorators and docstring."""
    body = function.body if isinstance(function.body, list) else [function.body]
    for part in body:
        for node in ast.walk(part):
            if not isinstance(node, ast.FunctionDef | ast.Lambda):
                yield node


def asked(tests: list[str], seconds: dict[str, float], room: str) -> list[str]:
    """Order tests by how near their folder is, then by cost, and leave out what is too much."""
    order = sorted(tests, key=lambda test: (room not in test, seconds.get(test, 0.0)))
    spent, chosen = 0.0, []
    for test in order[:MOST]:
        spent += seconds.get(test, 0.0)
        if spent > LONGEST and chosen:
            break
        chosen.append(test)
    return chosen


def passes(tree: Path, tests: list[str], limit: float) -> bool:
    """Tell whether all these tests pass in a tree; one that takes far too long does not."""
    names = tree / ".asked"
    names.write_text("".join(f"{test}\n" for test in tests), "utf-8")
    path = f"{tree / 'src'}"
    call = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-p", "no:cacheprovider"]
    call += ["-m", "not verdict and not weekly and not nightly", f"@{names}"]
    # all claims: else digests of their code, which a changed line makes stale, would be taken anew for each mutant
    environment = {**os.environ, "PYTHONPATH": path, "STEEPEST_CLAIMS": "all"}
    environment["STEEPEST_TEST_LISTS"] = str(tree / ".lists")
    try:
        done = subprocess.run(
            call, cwd=tree, env=environment, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1, 2):
        print(done.stdout[-800:], done.stderr[-800:], flush=True)
    return done.returncode == 0


def tried(
    mutant: Mutant, tree: Path, lines: Lines, seconds: dict[str, float], thorough: set[str]
) -> dict:
    """Say which tier notices a mutant."""
    path = tree / mutant.file
    before = path.read_bytes()
    by = [test for test, run in lines[mutant.file].items() if mutant.line in run]
    by = [test for test in by if not test.startswith(LEFT_OUT)]
    room = f"/{mutant.file.split('/')[2]}/"
    tiers = {
        "quick": asked([test for test in by if test not in thorough], seconds, room),
        "thorough": asked([test for test in by if test in thorough], seconds, room),
    }
    fate, start = "unnoticed", time.monotonic()
    path.write_bytes(before[: mutant.start] + mutant.text.encode() + before[mutant.end :])
    try:
        for tier, tests in tiers.items():
            limit = 120 + 10 * sum(seconds.get(test, 0.0) for test in tests)
            if tests and not passes(tree, tests, limit):
                fate = tier
                break
    finally:
        path.write_bytes(before)
    counts = {tier: len(tests) for tier, tests in tiers.items()}
    was = before[mutant.start : mutant.end].decode()
    spent = round(time.monotonic() - start, 1)
    return {**mutant._asdict(), "was": was, "fate": fate, "asked": counts, "seconds": spent}


def main() -> None:
    """Print a line for each mutant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("coverage", type=Path)
    parser.add_argument("seconds", type=Path)
    parser.add_argument("--tree", type=Path, required=True, help="a copy that is changed")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="0/1", help="one of several processes, with their trees")
    parser.add_argument(
        "--since", help="the commit that was covered; files changed since are left out"
    )
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    lines = covered(options.coverage)
    if options.since:
        difference = ["git", "diff", "--name-only", options.since]
        changed_since = subprocess.check_output(difference, cwd=options.tree, text=True).split()
        lines = {file: run for file, run in lines.items() if file not in changed_since}
    seconds = read(options.seconds)
    thorough = set(THOROUGH.read_text("utf-8").splitlines())
    every = mutants(options.tree, lines)
    draw = random.Random(options.seed)
    # a line first, so that long lines count no more than others
    places = sorted({(mutant.file, mutant.line) for mutant in every})
    chosen = draw.sample(places, min(options.count, len(places)))
    picked = [draw.choice([m for m in every if (m.file, m.line) == place]) for place in chosen]
    number, parts = map(int, options.part.split("/"))
    with options.json.open("a", encoding="utf-8") as file:
        for mutant in picked[number::parts]:
            result = tried(mutant, options.tree, lines, seconds, thorough)
            file.write(json.dumps(result) + "\n")
            file.flush()
            print(result["fate"], mutant.file, mutant.line, result["seconds"], flush=True)


if __name__ == "__main__":
    main()
