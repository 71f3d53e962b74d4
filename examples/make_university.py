"""Write a theory about a university department as .mln: 22 predicates, 100 formulas of 60 shapes, up to five variables.

It is drawn at random, and the same for the same seed; nothing in it is measured. Formulas that differ in weights and
constants only have one shape. `--domain person=60,course=30,paper=60,project=10` says how many there are.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

CONSTANTS = {
    "position": ["Lecturer", "Reader", "Chair", "Emeritus"],
    "phase": ["Courses", "Exam", "Thesis"],
    "year": ["First", "Second", "Third", "Fourth"],
    "level": ["Basic", "Middle", "Advanced"],
    "quarter": ["Winter", "Spring", "Autumn"],
}

PREDICATES = {
    "Professor": ["person"],
    "Student": ["person"],
    "Visitor": ["person"],
    "Holds": ["person", "position"],
    "InPhase": ["person", "phase"],
    "InYear": ["person", "year"],
    "AdvisedBy": ["person", "person"],
    "MentoredBy": ["person", "person"],
    "WorksWith": ["person", "person"],
    "SharesOffice": ["person", "person"],
    "TaughtBy": ["course", "person", "quarter"],
    "Assists": ["course", "person", "quarter"],
    "Attends": ["person", "course"],
    "HasLevel": ["course", "level"],
    "Follows": ["course", "course"],
    "Wrote": ["paper", "person"],
    "Cites": ["paper", "paper"],
    "About": ["paper", "project"],
    "MemberOf": ["person", "project"],
    "Leads": ["person", "project"],
    "Funded": ["project"],
    "Popular": ["course"],
}

SHAPES, FORMULAS, MOST_VARIABLES = 60, 100, 5

Argument = tuple[str, str]  # a sort, and a variable; or "" where a constant stands
Literal = tuple[bool, str, tuple[Argument, ...]]


def clause(rng: random.Random, length: int) -> list[Literal] | None:
    """Literals that are joined by variables; None if there are too many variables, or an atom twice."""
    named: dict[str, list[str]] = {}
    literals: list[Literal] = []
    for _ in range(length):
        joined = [p for p, sorts in PREDICATES.items() if set(sorts) & set(named)] if literals else list(PREDICATES)
        predicate = rng.choice(joined)
        shared = rng.choice([j for j, sort in enumerate(PREDICATES[predicate]) if not literals or sort in named])
        arguments: list[Argument] = []
        for j, sort in enumerate(PREDICATES[predicate]):
            names = named.setdefault(sort, [])
            other = [(sort, name) for name in names if (sort, name) not in arguments]
            joins = bool(literals) and j == shared
            if sort in CONSTANTS and not joins and rng.random() < 0.7:
                arguments.append((sort, ""))
            elif other and (joins or rng.random() < 0.5):
                arguments.append(rng.choice(other))
            else:
                names.append(f"{sort[:2]}{len(names) + 1}")
                arguments.append((sort, names[-1]))
        literals.append((rng.random() < 0.5, predicate, tuple(arguments)))
    atoms = [literal[1:] for literal in literals]
    slots = [sort for _, arguments in atoms for sort, name in arguments if not name]
    few = sum(map(len, named.values())) <= MOST_VARIABLES and all(slots.count(s) <= len(CONSTANTS[s]) for s in slots)
    return literals if few and len(set(atoms)) == len(atoms) else None


def shapes(rng: random.Random) -> list[list[Literal]]:
    """Different clauses of one to five literals."""
    found: dict[str, list[Literal]] = {}
    while len(found) < SHAPES:
        literals = clause(rng, rng.choice([1, 2, 2, 3, 3, 3, 4, 4, 5]))
        if literals is not None:
            found.setdefault(str(literals), literals)
    return list(found.values())


def text(rng: random.Random, literals: list[Literal]) -> str:
    """The clause as an implication of its last literal, with different constants drawn afresh."""
    left = {sort: rng.sample(values, len(values)) for sort, values in CONSTANTS.items()}
    atoms = [
        f"{predicate}({','.join(name or left[sort].pop() for sort, name in arguments)})"
        for _, predicate, arguments in literals
    ]
    signs = [sign for sign, _, _ in literals]
    last = f"{'' if signs[-1] else '!'}{atoms[-1]}"
    body = " ^ ".join(f"{'!' if sign else ''}{atom}" for sign, atom in zip(signs[:-1], atoms[:-1], strict=True))
    return f"{body} => {last}" if body else last


def formulas(rng: random.Random) -> Iterator[str]:
    """Each shape once; then those with constants again, with other constants and weights."""
    all_shapes = shapes(rng)
    seen = set()
    for literals in all_shapes:
        seen.add(line := text(rng, literals))
        yield line
    again = [x for x in all_shapes if any(not name for _, _, arguments in x for _, name in arguments)]
    while len(seen) < FORMULAS:
        if (line := text(rng, rng.choice(again))) not in seen:
            seen.add(line)
            yield line


def university(seed: int) -> str:
    rng = random.Random(seed)
    lines = [f"// A university department, drawn with seed {seed}: {FORMULAS} formulas of {SHAPES} shapes.", ""]
    lines += [f"{sort} = {{{', '.join(values)}}}" for sort, values in CONSTANTS.items()] + [""]
    lines += [f"{name}({', '.join(sorts)})" for name, sorts in PREDICATES.items()] + [""]
    lines += [f"{rng.gauss(0.0, 0.5):.2f} {line}" for line in formulas(rng)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 2 or not all(word.isdecimal() for word in sys.argv[1:]):
        sys.exit("usage: make_university.py [SEED] > university.mln")
    sys.stdout.write(university(int(sys.argv[1]) if len(sys.argv) == 2 else 1))
