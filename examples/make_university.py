"""Write a theory about a university department as .mln: 22 predicates, 100 formulas of 60 shapes, up to five variables.

It is drawn at random, and the same for the same seed; nothing in it is measured. Formulas that differ in weights and
constants only have one shape. `--domain person=60,course=30,paper=60,project=10` says how many there are.

With three words it writes an evidence-heavy department, the shape of UW-CSE: who is advised by whom, from thousands of
facts about courses, papers and projects, which are false where the evidence is silent.

    python examples/make_university.py 300 1 department    # 300 people: writes department.mln and department.db
    definetti marginals department.mln --evidence department.db --query "#AdvisedBy"
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


# --- a department with its facts -------------------------------------------------------------------------------------

OPEN = ("AdvisedBy", "MentoredBy", "WorksWith")
PATHS = (  # from a student s to a professor p
    "TaughtBy(c,p,q) ^ Assists(c,s,q)",
    "TaughtBy(c,p,q) ^ Attends(s,c)",
    "Assists(c,s,q) ^ Popular(c) ^ TaughtBy(c,p,q)",
    "Attends(s,c) ^ HasLevel(c,{level}) ^ TaughtBy(c,p,q)",
    "Attends(s,c) ^ Follows(d,c) ^ TaughtBy(d,p,q)",
    "Wrote(a,s) ^ Wrote(a,p)",
    "Wrote(a,s) ^ Cites(a,b) ^ Wrote(b,p)",
    "Wrote(a,s) ^ About(a,g) ^ Leads(p,g)",
    "Wrote(a,s) ^ About(a,g) ^ MemberOf(p,g)",
    "Wrote(a,s) ^ About(a,g) ^ About(b,g) ^ Wrote(b,p)",
    "Wrote(a,s) ^ Wrote(a,r) ^ SharesOffice(r,p)",
    "MemberOf(s,g) ^ Leads(p,g)",
    "MemberOf(s,g) ^ MemberOf(p,g) ^ Funded(g)",
    "SharesOffice(s,p)",
    "SharesOffice(s,r) ^ MemberOf(r,g) ^ Leads(p,g)",
)
GUARDS = ("InPhase(s,{phase})", "InYear(s,{year})", "Holds(p,{position})", "Student(s)", "!Visitor(s)")
LINKS = (
    "AdvisedBy(s,p) ^ MentoredBy(s,p)",
    "AdvisedBy(s,p) => WorksWith(s,p)",
    "Wrote(a,s) ^ Wrote(a,p) ^ AdvisedBy(s,p) => WorksWith(s,p)",
    "MemberOf(s,g) ^ MemberOf(r,g) ^ Leads(p,g) ^ AdvisedBy(s,p) => AdvisedBy(r,p)",
    "Wrote(a,s) ^ Wrote(a,r) ^ WorksWith(s,p) => WorksWith(r,p)",
    "SharesOffice(s,r) ^ MentoredBy(s,p) => MentoredBy(r,p)",
)


def department(people: int, seed: int = 1) -> tuple[str, str]:
    """The model and its evidence."""
    rng = random.Random(seed)

    def filled(line: str) -> str:
        return line.format(**{sort: rng.choice(values) for sort, values in CONSTANTS.items()})

    lines = [f"{sort} = {{{', '.join(values)}}}" for sort, values in CONSTANTS.items()] + [""]
    lines += [f"*{name}({', '.join(sorts)})" for name, sorts in PREDICATES.items()] + [""]
    lines += [f"-2.5 {name}(s,p)" for name in OPEN]
    for path in PATHS:
        lines += [f"{rng.uniform(0.05, 0.5):.2f} {filled(path)} ^ {name}(s,p)" for name in OPEN]
    for _ in range(15):
        path, guard = rng.choice(PATHS), rng.choice(GUARDS)
        lines.append(f"{rng.gauss(0.0, 0.2):.2f} {filled(guard)} ^ {filled(path)} ^ {rng.choice(OPEN)}(s,p)")
    lines += [f"{rng.uniform(0.1, 0.4):.2f} {link}" for link in LINKS]
    lines.append("-1.50 AdvisedBy(s,p) ^ AdvisedBy(s,o) ^ p != o")
    facts = dict.fromkeys(department_facts(people, rng))
    return "\n".join(lines) + "\n", "\n".join(facts) + "\n"


def department_facts(people: int, rng: random.Random) -> Iterator[str]:
    """What is known of so many people, a third of them professors; who may be advised by whom is left open (?)."""
    professors = [f"P{k}" for k in range(max(1, people // 3))]
    students = [f"S{k}" for k in range(people - len(professors))]
    courses = [f"C{k}" for k in range(max(2, people // 4))]
    projects = [f"G{k}" for k in range(max(1, people // 12))]
    near: dict[str, set[str]] = {s: set() for s in students}  # the professors that a student has to do with
    for p in professors:
        yield f"Professor({p})"
        yield f"Holds({p},{rng.choice(CONSTANTS['position'])})"
    leader = {g: rng.choice(professors) for g in projects}
    for g in projects:
        yield f"Leads({leader[g]},{g})"
        if rng.random() < 0.5:
            yield f"Funded({g})"
    member = {x: rng.choice(projects) for x in professors + students}
    for x, g in member.items():
        yield f"MemberOf({x},{g})"
    for s in students:
        yield f"{'Visitor' if rng.random() < 0.1 else 'Student'}({s})"
        yield f"InPhase({s},{rng.choice(CONSTANTS['phase'])})"
        yield f"InYear({s},{rng.choice(CONSTANTS['year'])})"
        near[s] |= {leader[member[s]], *(p for p in professors if member[p] == member[s])}
    for k, c in enumerate(courses):
        teacher = rng.choice(professors)
        yield f"HasLevel({c},{rng.choice(CONSTANTS['level'])})"
        yield f"Follows({c},{courses[k - 1]})"
        if rng.random() < 0.3:
            yield f"Popular({c})"
        for q in rng.sample(CONSTANTS["quarter"], 2):
            helper = rng.choice(students)
            yield f"TaughtBy({c},{teacher},{q})"
            yield f"Assists({c},{helper},{q})"
            near[helper].add(teacher)
        for s in rng.sample(students, min(len(students), 12)):
            yield f"Attends({s},{c})"
            near[s].add(teacher)
    for k in range(people):
        p, authors = rng.choice(professors), rng.sample(students, min(len(students), rng.choice([1, 1, 2])))
        yield f"About(A{k},{member[p]})"
        for x in (p, *authors):
            yield f"Wrote(A{k},{x})"
        for s in authors:
            near[s].add(p)
        for other in rng.sample(range(people), min(3, people)):
            yield f"Cites(A{k},A{other})"
    seats = rng.sample(professors + students, people)
    for at in range(0, people - 2, 3):
        for x, y in ((0, 1), (1, 2), (2, 0)):
            yield f"SharesOffice({seats[at + x]},{seats[at + y]})"
            yield f"SharesOffice({seats[at + y]},{seats[at + x]})"
    for s, some in near.items():
        for p in sorted(some):
            yield from (f"?{name}({s},{p})" for name in OPEN)


if __name__ == "__main__":
    if len(sys.argv) == 4 and all(word.isdecimal() for word in sys.argv[1:3]) and int(sys.argv[1]) >= 6:
        for suffix, written in zip((".mln", ".db"), department(int(sys.argv[1]), int(sys.argv[2])), strict=True):
            with open(sys.argv[3] + suffix, "w", encoding="utf-8") as file:
                file.write(written)
        sys.exit()
    if len(sys.argv) > 2 or not all(word.isdecimal() for word in sys.argv[1:]):
        sys.exit("usage: make_university.py [SEED] > university.mln, or make_university.py PEOPLE SEED NAME")
    sys.stdout.write(university(int(sys.argv[1]) if len(sys.argv) == 2 else 1))
