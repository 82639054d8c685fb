"""``steepest cite``: how to cite a verdict, Steepest, and the works that a claim cites."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steepest import __version__
from steepest.app.streams import tell, tell_json
from steepest.catalogue import HERE, Entry
from steepest.core.words import LOOKS
from steepest.engine.commands import run_command
from steepest.engine.descriptions import description
from steepest.engine.fingerprint import staleness
from steepest.engine.rates import hold_rates, record_of, spelled_rates
from steepest.engine.records import Record as StoredRecord
from steepest.engine.records import Records
from steepest.record import PRESET, Record
from steepest.sources import Source, cited, entry

TITLE = "Steepest"
ABSTRACT = (
    "Puts the theory of gradient descent on neural networks to the test: predict, observe, judge."
)
AUTHORS = "The Steepest developers"
LICENSE = "MIT"
SEEDS_OF_A_VERSION = 1000
"""Version v of a claim has the seeds 1000·v and up, which nobody ran before it (``benchmarks/seeds``)."""
NAMES = {"jax": "JAX", "jaxlib": "jaxlib", "numpy": "NumPy", "python": "Python"}
"""What a number may depend on besides Steepest, and how people spell it."""


def citation_file() -> str:
    """Return what ``CITATION.cff`` in the repository says: the metadata of Steepest in CFF 1.2.0."""
    lines = (
        "cff-version: 1.2.0",
        'message: "If you use Steepest, please cite it; steepest cite CLAIM says how to cite a verdict."',
        "type: software",
        f'title: "{TITLE}"',
        f'abstract: "{ABSTRACT}"',
        "authors:",
        f'  - name: "{AUTHORS}"',
        f'version: "{__version__}"',
        f"license: {LICENSE}",
    )
    return "\n".join(lines) + "\n"


def bibtex_of_steepest(version: str = __version__) -> str:
    """Return the BibTeX entry of Steepest.

    >>> print(bibtex_of_steepest("0.1.0"))
    @software{steepest,
      author = {{The Steepest developers}},
      title = {{Steepest}},
      version = {0.1.0},
      license = {MIT},
      note = {Puts the theory of gradient descent on neural networks to the test: predict, observe, judge.},
    }
    """
    fields = {
        "author": f"{{{AUTHORS}}}",
        "title": f"{{{TITLE}}}",
        "version": version,
        "license": LICENSE,
        "note": ABSTRACT,
    }
    return entry("software", "steepest", fields)


@dataclass(frozen=True)
class Citation:
    """How to cite one claim and its verdict.

    Attributes:
        line: the claim's line in the catalogue.
        version: of the claim.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        seed: the seed of every random number.
        command: what computes the verdict.
        works: what the claim cites.
        result: the record of the stored result, or None.
        missing: why there is no verdict; empty where there is one.
        stale: why the verdict may not be that of the code that is here; empty where it is.
        record: what is recorded of this version of the claim with Steepest, at the quick preset; or None.
    """

    line: Entry
    version: int
    preset: str
    seed: int
    command: str
    works: tuple[Source, ...]
    result: StoredRecord | None
    missing: str = ""
    stale: str = ""
    record: Record | None = None

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, as a paper would cite it."""
        from_package = "" if self.line.origin == HERE else f" from {self.line.origin}"
        asked = f"preset {self.preset}, seed {self.seed}"
        if self.result is None:
            version = f"Steepest {__version__}"
            return f"{version}, claim {self.line.name}{from_package}, version {self.version}."
        result = self.result
        word = LOOKS[result.verdict].word
        return (
            f"Steepest {result.versions['steepest']}, claim {self.line.name}{from_package}, version {self.version}: "
            f"{word} at {asked}{self._rates}; observed on {result.observed_at}, code {result.stamp['judgement']}."
        )

    @property
    def _rates(self) -> str:
        """How often it holds, behind the verdict that it stands beside."""
        rates = spelled_rates(self.record)
        return f", {rates}" if rates else ""

    @property
    def bibtex(self) -> tuple[str, ...]:
        """The entries: Steepest first, then the works that the claim cites."""
        version = __version__ if self.result is None else self.result.versions["steepest"]
        return (bibtex_of_steepest(version), *(work.bibtex() for work in self.works))

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON-ready object; what only a result has is null without one."""
        result = self.result
        return {
            "claim": self.line.name,
            "says": self.line.says,
            "origin": self.line.origin,
            "version": self.version,
            "preset": self.preset,
            "seed": self.seed,
            "first_seed_of_version": SEEDS_OF_A_VERSION * self.version,
            "verdict": None if result is None else str(result.verdict),
            "reason": None if result is None else result.reason,
            "observed_at": None if result is None else result.observed_at,
            "judged_at": None if result is None else result.judged_at,
            "stamp": None if result is None else dict(result.stamp),
            "versions": None if result is None else dict(result.versions),
            "hold_rates": hold_rates(self.record),
            "missing": self.missing,
            "stale": self.stale,
            "command": self.command,
            "sentence": self.sentence,
            "works": [work.key for work in self.works],
            "bibtex": list(self.bibtex),
        }


def citation(line: Entry, results: Path, preset: str = "quick", seed: int = 0) -> Citation:
    """Return how to cite a claim; neither it nor JAX is imported, unless its source does not say its version.

    Args:
        line: the claim's line in the catalogue.
        results: the folder of results; nothing is run, and nothing written.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        seed: the seed of every random number.

    Raises:
        UserError: a claim that cannot be read.
    """
    text = description(line)
    result = _stored(line.name, text.version, Records(results), preset, seed)
    again = run_command(line, preset, seed)
    missing = (
        f"no result of {line.name} (version {text.version}, preset {preset}, seed {seed}) is stored in "
        f"{results}; {again} --out {results} computes it"
    )
    return Citation(
        line=line,
        version=text.version,
        preset=preset,
        seed=seed,
        command=again,
        works=cited(text.source, known_only=False),
        result=result,
        missing="" if result else missing,
        stale=staleness(line, result) if result else "",
        record=record_of(line, text.version) if preset == PRESET else None,
    )


def _stored(
    claim: str, version: int, records: Records, preset: str, seed: int
) -> StoredRecord | None:
    """Return the record of a version of a claim that was judged last, or None."""
    stored = [
        record
        for _, record in records.of_claim(claim)
        if record.answers(preset, seed) and record.claim_version == version
    ]
    return max(stored, key=lambda record: record.judged_at, default=None)


def show_citation(citation: Citation, as_json: bool) -> None:
    """Print a citation: for people, with BibTeX that can be copied, or as JSON."""
    if as_json:
        tell_json(citation.to_json())
        return
    tell(f"{citation.line.name}: {citation.line.says}\n")
    for title, value in _facts(citation).items():
        tell(f"  {title:<9} {value}")
    tell(f"\nCite it as:\n\n  {citation.sentence}\n")
    if not citation.works:
        tell("The claim cites no work of the bibliography; steepest show has its source.\n")
    tell("\n\n".join(citation.bibtex))


def _facts(citation: Citation) -> Mapping[str, str]:
    result = citation.result
    first = SEEDS_OF_A_VERSION * citation.version
    asked = {
        "version": f"{citation.version} of the claim; its own block of seeds is {first}, {first + 1}, …",
        "asked": f"preset {citation.preset}, seed {citation.seed}",
    }
    rates = spelled_rates(citation.record)
    if rates:
        asked["rates"] = rates
    if result is None:
        return {**asked, "verdict": f"none: {citation.missing}"}
    versions = [f"{NAMES[name]} {result.versions[name]}" for name in NAMES]
    facts = {
        **asked,
        "verdict": f"{LOOKS[result.verdict].word} ({result.reason})",
        "observed": result.observed_at,
        "judged": result.judged_at,
        "code": ", ".join(f"{part} {digest}" for part, digest in result.stamp.items()),
        "with": ", ".join([f"Steepest {result.versions['steepest']}", *versions]),
        "again": citation.command,
    }
    return {**facts, "stale": citation.stale} if citation.stale else facts
