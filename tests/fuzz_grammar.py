"""Inputs that are valid by construction, but for an odd choice now and then: one function per format.

`Choice.odd` is the only source of mistakes, so that their rate is the same everywhere: an input of some fifty choices is
right about every third time.
"""

# ruff: noqa: E501  lists of inputs

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

LONG = "9" * 5000  # more digits than Python turns into a number
NUMBERS = ["0", "-1", "1e999", "nan", "inf", "1e-400", "4294967296", "1_0", LONG, "x", ""]
NAMES = [
    "a b",
    "\x1b[2J",
    "<script>",
    "../x",
    "__import__",
    'quo"te',
    "ünïcode",
    "v",
    "x" * 300,
    "\0",
    "9",
    "",
    "-7",
    LONG,
]


class Choice:
    """Random choices with a rate of odd ones."""

    def __init__(self, rng: Random, rate: float = 0.012) -> None:
        self.rng, self.rate = rng, rng.choice((0.0, rate, rate, 5 * rate))

    def odd(self, value: Any, others: Sequence[Any]) -> Any:
        return self.rng.choice(others) if self.rng.random() < self.rate else value

    def one(self, *ways: Any) -> Any:
        return self.rng.choice(ways)

    def many(self, least: int, most: int) -> range:
        return range(self.rng.randint(least, most))

    def number(self) -> str:
        return self.odd(f"{self.rng.choice((0.0, 0.25, 1.0, 2.5, 1e-3, 7.0)):g}", NUMBERS)

    def count(self, value: int) -> str:
        return str(self.odd(value, [value + 1, value - 1, 0, *NUMBERS]))

    def spaced(self, words: Sequence[str]) -> str:
        return "".join(f"{word}{self.one(' ', ' ', chr(10), '  ', chr(9))}" for word in words)


# --- factor graphs ----------------------------------------------------------------------------------------------------


def uai(c: Choice) -> bytes:
    cards = [c.rng.randint(1, 3) for _ in c.many(1, 4)]
    scopes = [c.rng.sample(range(len(cards)), c.rng.randint(0, min(3, len(cards)))) for _ in c.many(0, 4)]
    scopes = [c.odd(scope, [[0, 0], [9], scope[:1]]) for scope in scopes]
    words = [c.odd(c.one("MARKOV", "BAYES", "markov"), ["MARKO", "5", ""]), c.count(len(cards)), *map(c.count, cards)]
    words += [c.count(len(scopes)), *(w for scope in scopes for w in (c.count(len(scope)), *map(c.count, scope)))]
    for scope in scopes:
        size = int(np.prod([cards[i] if i < len(cards) else 2 for i in scope], dtype=int))
        entries = [c.number() for _ in range(size)]
        words += [c.count(size), *c.odd(entries, [entries[:-1], ["0"] * size, [*entries, "1"]])]
    return c.spaced(c.odd(words, [words[:-1], [*words, "1"], words[: len(words) // 2], []])).encode()


def evid(c: Choice) -> bytes:
    """For the model of `fuzzing.graph`: X0, X1 with two values, X2 with three."""
    sites = c.rng.sample(range(3), c.rng.randint(0, 3))
    pairs = [w for i in sites for w in (c.count(i), c.count(c.rng.randrange((2, 2, 3)[i])))]
    pairs += c.odd([], [["0", "1", "0", "0"], ["5", "0"]])
    words = [c.count(len(pairs) // 2), *pairs]
    way = c.rng.randrange(8)
    if way == 0:
        return ("1\n" + " ".join(words) + "\n").encode()
    if way == 1:
        return c.one(
            b"2\n1 0 1\n1 1 0\n",
            b"2\n0\n0\n",
            b"1 0\n",
            b"1\n0\n",
            b"2 1 0 1 1 1 0\n",
            b"3\n1 0 0\n0\n1 2 1\n",
            b"2\n1 0\n1 1\n",
        )
    return c.spaced(words).encode()


def fg(c: Choice) -> bytes:
    cards = {label: c.rng.randint(1, 3) for label in c.rng.sample(range(12), 4)}
    blocks = []
    for _ in c.many(0, 3):
        scope = c.rng.sample(sorted(cards), c.rng.randint(0, 3))
        scope = c.odd(scope, [scope + scope[:1], [99]])
        shape = [cards.get(label, 2) for label in scope]
        size = int(np.prod(shape, dtype=int))
        places = c.rng.sample(range(size), c.rng.randint(1, size))
        places = c.odd(places, [places + places[:1], [size], []])
        lines = [
            c.count(len(scope)),
            " ".join(map(c.count, scope)),
            " ".join(map(c.count, shape)),
            c.count(len(places)),
        ]
        values = c.odd([c.number() for _ in places], [["0"] * len(places)])
        lines += [f"{c.count(place)} {value}" for place, value in zip(places, values, strict=False)]
        blocks.append("\n".join(lines) + c.one("", "", " # a comment"))
    text = "\n\n".join([c.count(len(blocks)), *blocks]) + "\n"
    huge = "1\n3\n0 1 2\n65536 65536 65536\n1\n0 1\n", "1\n1\n0\n99999999999\n1\n0 1\n"
    return c.odd(text, [*huge, text[: len(text) // 2], text + "7\n", "# only a comment\n"]).encode()


# --- draws ------------------------------------------------------------------------------------------------------------


def csv_draws(c: Choice) -> bytes:
    """For the same model, with X2 observed in half of the cases: see `fuzzing`."""
    names = ["X0", "X1", "X2"]
    chains = c.one(0, 0, 2)
    if chains:
        names.insert(c.rng.randrange(4), "chain")
    if c.rng.random() < 0.5:
        c.rng.shuffle(names)
    if c.rng.random() < 0.1:
        names = [name.removeprefix("X") for name in names]
    head = c.odd(names, [names[:-1], [*names, "X0"], [*names, "X9"], ["0", "1", "2"], ["", ""], [*names, "chain"]])
    rows = []
    for k in c.many(1, 6):
        row = [c.count(k % chains if name == "chain" and chains else c.rng.randrange(2)) for name in names]
        rows.append(c.odd(row, [row[:-1], [*row, "1"], [], [f'"{row[0]}"', *row[1:]], [" 1 ", *row[1:]]]))
    named = chains or c.rng.random() < 0.6
    lines = [head, *rows] if named else rows
    text = "\n".join(",".join(line) for line in lines) + c.one("\n", "", "\r\n")
    return c.odd(text, ["", "\n", ",,\n", text + '"open', text.replace("\n", "\r"), "X0,X1,X2\n"]).encode(
        "utf-8", "replace"
    )


def npz_draws(c: Choice) -> bytes:
    names = c.odd(["X0", "X1", "X2"], [["X0"], ["X2", "X1", "X0"], []])
    shape = (c.rng.randint(1, 3), c.rng.randint(1, 2), 3)
    values = np.array([c.rng.randrange(2) for _ in range(int(np.prod(shape)))], np.uint8).reshape(shape)
    parts: dict[str, Any] = {"names": np.array(names), "values": values}
    if c.rng.random() < 0.5:
        parts = {"names": np.array(names), "bits": np.packbits(values, axis=-1)}
    parts = c.odd(parts, [{"names": np.array(names)}, {"values": values}, parts | {"values": np.array(["a"])},
                          parts | {"bits": np.zeros((1, 1), np.float64)}, parts | {"names": np.zeros(3)},
                          parts | {"values": np.zeros((2, 3))}, parts | {"bits": np.zeros((), np.uint8)}])  # fmt: skip
    file = io.BytesIO()
    c.one(np.savez, np.savez_compressed)(file, **parts)
    return file.getvalue()


def generators(c: Choice) -> bytes:
    """For the model of `fuzzing.pair`: three variables with two values, the first and the last alike."""
    ways: list[Callable[[], str]] = [
        lambda: "(X0 X2)",
        lambda: "(X0=0 X2=0)(X0=1 X2=1)",
        lambda: "(X0=0,X0=1)(X1=0 X1=1) (X2=0 X2=1)",
        lambda: "()",
        lambda: "# nothing",
        lambda: "",
        lambda: "( X0 , X2 ) # both ends",
    ]
    wrong = ["(X0 X2", "X0 X2)", "(X0 X0)", "(X0 X1=0)", "(X9 X0)", "(X0=7 X1=0)", "(f(X0 X2)", "(f(a) X2)", "(X0 Y)",
             "(X0 X2)(X0 X1)", "((X0 X2))", "(X0 X1 X2)", "(X0=0 X0)", "(X0 X3)", "(X0 X2))"]  # fmt: skip
    lines = [c.odd(c.rng.choice(ways)(), wrong) for _ in c.many(1, 4)]
    return "\n".join(lines).encode()


# --- results ----------------------------------------------------------------------------------------------------------


def _estimate(c: Choice) -> dict[str, Any]:
    def real(value: Any) -> Any:
        return c.odd(value, [None, -1, 2.0, "x", True, [0.1], float("nan"), 1e400, {}])

    several = c.rng.random() < 0.3
    probability = [0.25, 0.25, 0.5] if several else c.one(0.0, 0.25, 1)
    error = [0.001] * 3 if several else 0.001
    known = c.rng.random() < 0.7
    rest = {"mcse": error, "half_width": error, "rhat": error, "ess": error} if known else {}
    row = {"probability": real(probability), "mcse": None, "half_width": None, "rhat": None, "ess": None} | rest
    return c.odd(row, [{}, {k: v for k, v in row.items() if k != "rhat"}])


def document(c: Choice) -> bytes:
    size = lambda: c.odd(c.rng.randint(1, 9), [0, -1, "3", None, 1e300, 2**70, [1]])  # noqa: E731
    orbits = [{"representative": c.odd(f"X{k}", NAMES), "size": size()} | _estimate(c) for k in c.many(0, 4)]
    queries = {c.odd(f"X{k}", NAMES): {"orbit_size": size()} | _estimate(c) for k in c.many(0, 3)}
    if c.rng.random() < 0.4:
        count = {
            "mean": c.odd(1.5, [None, [1], "x"]),
            "std": 0.5,
            "mcse": 0.1,
            "half_width": 0.2,
            "rhat": 1,
            "ess": 9.0,
        }
        rows = c.odd([{"value": 0, "probability": 0.5}], [[1], None, [[]], "x", [["a", 1]]])
        queries["#X"] = count | {"orbit_size": size(), "distribution": rows}
    if c.rng.random() < 0.2:
        queries["X0 | X1"] = {"orbit_size": 1} | _estimate(c) | {"probability": None}
    warnings = [{"kind": c.odd("not-mixed", [1, None]), "message": c.odd("text", NAMES)} for _ in c.many(0, 2)]
    made: Any = {"queries": queries, "orbits": orbits, "warnings": warnings, "run": {}}
    made = c.odd(made, [[], None, 3, {"orbits": []}, {"queries": {}}, made | {"orbits": {}}, made | {"queries": []},
                        made | {"warnings": [1]}, made | {"orbits": [3]}, made | {"run": []}])  # fmt: skip
    text = json.dumps(made, indent=c.one(None, 1))
    return c.odd(text, ["[" * 100_000, "{" * 2000, text[:-3], text + "]", LONG, f'{{"orbits": {LONG}}}']).encode()


HEAD = "kind,variable,value,probability,mcse,half_width,rhat,ess,orbit_size,trusted"


def table(c: Choice) -> bytes:
    doubt = c.rng.random() < 0.4
    lines = [c.odd(HEAD + ",warnings" * doubt, [HEAD + ",more", "kind", ""])]
    for k in c.many(0, 5):
        kind, name = c.one("variable", "query"), c.odd(c.one(f"X{k}", "#X", '"a,b"'), ["X0", *NAMES])
        several = c.rng.random() < 0.3 and name[:1] != "#"
        for value in range(3) if several else [""]:
            middle = [c.number() if c.rng.random() < 0.6 else "" for _ in range(4)]
            probability = c.odd(c.one("0.25", "0", "1"), ["", "1.5", "-1", *NUMBERS])
            row = [
                kind,
                name,
                c.odd(str(value), ["5", "x", "1.5"]),
                probability,
                *middle,
                c.odd("2", ["", "x", "1e999"]),
                "true",
            ]
            row += [c.one("", "not-mixed", "not-mixed other", "\x1b[2J")] if doubt else []
            lines.append(",".join(c.odd(row, [row[:-1], [*row, "1"]])))
    text = "\n".join(lines) + "\n"
    return c.odd(text, ["", text + '"open', text + "\0\n", text + "x" * 140_000]).encode("utf-8", "replace")


def other_programs(c: Choice) -> bytes:
    if c.rng.random() < 0.5:
        lines = [
            f"{c.odd(c.one('Smokes(Anna)', 'F(A, B)'), NAMES)} {c.odd(c.one('0.5', '1', '1e-3'), NUMBERS)}"
            for _ in c.many(0, 5)
        ]
        return ("\n".join(c.odd(lines, [[*lines, "0.5"], [*lines, "   "]])) + "\n").encode("utf-8", "replace")
    words = [w for _ in c.many(1, 4) for w in c.one(["2", "0.25", "0.75"], ["3", "0.2", "0.3", "0.5"], ["1", "1"])]
    words = [c.odd(word, NUMBERS) for word in words]
    variables, place = 0, 0
    while place < len(words) and words[place] in ("1", "2", "3"):
        variables, place = variables + 1, place + 1 + int(words[place])
    front = [c.count(variables)] if c.rng.random() < 0.7 else ["1", str(variables)]
    return ("MAR\n" + " ".join([*front, *words]) + "\n").encode()


# --- Markov logic -----------------------------------------------------------------------------------------------------

#: name → sorts; the last argument of `Likes` has exactly one value, `Mother` is a function, `Time` has numbers.
PREDICATES = {"Smokes": ("person",), "Friends": ("person", "person"), "Likes": ("person", "food"),
              "Rain": (), "At": ("person", "time"), "Next": ("time", "time")}  # fmt: skip
CONSTANTS = {"person": ["Anna", "Bob", "Carl"], "food": ["Fish", '"a \\"b\\""', "Pie"], "time": ["0", "1", "2", "3"]}
VARIABLES = {"person": ["x", "y", "z"], "food": ["f", "g"], "time": ["t", "s"]}
DECLARED = """person = {Anna, Bob, Carl}
food = {Fish, "a \\"b\\"", Pie}
time = {0,...,3}
Smokes(person)
Friends(person, person)
Likes(person, food!)
Rain
At(person, time)
Next(time, time)
person Mother(person)
"""


class Logic:
    """Formulas over these predicates."""

    def __init__(self, c: Choice, marked: bool = False, constants_only: bool = False, plus: bool = True) -> None:
        self.c, self.marked, self.constants_only, self.plus = c, marked, constants_only, plus

    def variable(self, sort: str) -> str:
        return ("?" if self.marked else "") + self.c.rng.choice(VARIABLES[sort])

    def term(self, sort: str, depth: int = 0) -> str:
        c = self.c
        if c.rng.random() < (1.0 if self.constants_only else 0.25):
            return c.odd(c.rng.choice(CONSTANTS[sort]), ["Zoe", '"new"', "-3", "1.5", "small", "99", "+x", "x!", "x?"])
        if depth < 2 and sort == "person" and c.rng.random() < 0.08:
            wrong = ["Father(x)", "Smokes(x)", "Mother(x,y)", "Mother(+x)", "Likes(x)"]
            return c.odd(f"Mother({self.term(sort, depth + 1)})", wrong)
        if depth < 2 and sort == "time" and c.rng.random() < 0.3:
            inner = self.term(sort, depth + 1)
            ways = [
                f"{inner} + 1",
                f"{inner}++",
                f"succ({inner})",
                f"plus({inner}, 1)",
                f"{inner} * 2 % 3",
                f"1 + {inner}",
            ]
            return c.odd(c.rng.choice(ways), ["1 / 0", "x / 2 + t", "succ(1,2)", "mod(t)", f"{inner} - -1", "Anna + 1"])
        return c.odd(self.variable(sort), [self.variable("food"), "Mother"])

    def atom(self) -> str:
        c = self.c
        name = c.rng.choice(sorted(PREDICATES))
        args = [self.term(sort) for sort in PREDICATES[name]]
        if self.plus and args and c.rng.random() < 0.06 and args[0] in VARIABLES["person"]:
            args[0] = "+" + args[0]
        args = c.odd(args, [args[:-1], [*args, "x"]])
        star = "*" if self.plus and c.rng.random() < 0.03 else ""
        return star + c.odd(name, ["Cancer", "smokes", "TRUE", *NAMES]) + (f"({', '.join(args)})" if args else "")

    def comparison(self) -> str:
        c = self.c
        sort = c.rng.choice(sorted(CONSTANTS))
        if sort == "time" and c.rng.random() < 0.6:
            return f"{self.term(sort)} {c.one('<', '>', '<=', '>=', '=', '!=')} {self.term(sort)}"
        if c.rng.random() < 0.2:
            return c.one("Mother(x) = y", "x = Mother(Anna)", "Mother(x) != Mother(y)", "greaterThan(t, s)", "substr(x, y)",
                         "lessThanEq(1, 2)", "Anna = Bob", "1 < 2", "Mother(x) = Mother(Mother(x))", "Nobody = Anna")  # fmt: skip
        return f"{self.term(sort)} {c.one('=', '!=', '=/=' if self.marked else '!=')} {self.term(sort)}"

    def formula(self, depth: int = 0) -> str:
        c = self.c
        way = c.rng.random() if depth < 3 else 0.0
        if way < 0.4:
            return self.comparison() if depth and c.rng.random() < 0.2 else self.atom()
        if way < 0.55:
            return (
                f"{c.one('!', '~', '! ')}{self.formula(depth + 1)}"
                if c.rng.random() < 0.7
                else f"[{self.formula(depth + 1)}]"
            )
        if way < 0.7 and not self.constants_only:
            sort = c.one("person", "person", "time")
            names = c.odd(self.variable(sort), ["x,x", "Anna", "q", f"{self.variable(sort)},{self.variable('food')}"])
            return (
                f"{c.one('EXIST', 'FORALL', 'exist', 'Exists', chr(92) + 'forall')} {names} ({self.formula(depth + 1)})"
            )
        parts = [self.formula(depth + 1) for _ in range(c.rng.randint(2, 3))]
        sign = c.odd(c.one("^", "v", "=>", "<=>", "&", "->"), ["&&", "and", "xor", ";", "$", "→"])
        joined = f" {sign} ".join(parts)
        return f"({joined})" if c.rng.random() < 0.6 else joined


WEIGHTS = ["1.5", "-0.5", "0", "2.", "log(0.3)", "-log(0.9/0.1)", "logx(0)", "exp(1)", "math.sqrt(2)", "2*log(0.5)",
           "log((1+1)*pi)", "log(e)", "float('inf')", "-float('inf')", "log(-(-1))"]  # fmt: skip
BAD_WEIGHTS = ["log(0)", "log(", "log(1", "foo(1)", "inf", "1e300", "log(1/0)", "float('x')", "exp(1000)", "math.x(1)", "sqrt(-1)",
               "log(1) 2", "logx(-1)", "log('a')", "log(inf-inf)", "log(float('inf'))*0", "exp(300)", "log(" + "(" * 60 + "1)"]  # fmt: skip
LINES = ["// a comment", "/* one\n more */", "", "#fixweight", '#include "part.mln"', "sort9 = {A, 7, \"x y\"}", "Q(sort9)",
         "1.0 Rain v\n  Rain", "color C(person)", "Both(person!, food)", "#fixunitclause Rain"]  # fmt: skip
ODD_LINES = ["person = {X}", "Smokes(person)", "n = {}", "n = {1,...,x}", "n = {5,...,2}", "n = {1,...,99999999999}", "n = {A, A}",
             "#include \"../x.mln\"", '#include "missing.mln"', '#include "input.mln"', '#include "/etc/passwd"', '#include ""',
             "#include \"C:\\\\x\"", "#unique x", "#nonsense", "#fuzzy P", "conf: Rain", "P :- Q", "|x| Smokes(x) <= 1", "Smokes|Rain(x)",
             "P(Rain) = 0.5", "Rain * 3", "Rain : 5", "$Rain", "1.0 Rain.", "inf Rain", "1 Rain ^", "(" * 300 + "Rain" + ")" * 300 + ".",
             "!" * 250 + "Rain.", '"open', "/* open", "1 Rain v (Rain", "1 Smokes(x?)", "*New(person)", "1 *Smokes(x) v " * 11 + "Rain",
             "n = {1.5}", "1 -5 = x", "1 Smokes(-5)", "1abc Rain", "1 x = y", "Fn(person) = x.", f"n = {{1,...,{LONG}}}", "1 v v v",
             "inf Mother2(person)", "1 Rain @ Rain", "#", "At2(time", f"1 At(x,{LONG}+t)", f"m = {{{LONG}}}\nM(m)\n1 M(i+1)",
             "1 " + "Mother(" * 210 + "x" + ")" * 210 + " = y", "EXIST x", "1 Smokes(x!)", "1 Mother(x)", "1 a-b(x)", "1 Smokes(x) /*"]  # fmt: skip


def mln(c: Choice) -> bytes:
    marked = c.rng.random() < 0.12
    logic = Logic(c, marked)
    lines = DECLARED.splitlines()
    for _ in c.many(0, 5):
        formula = logic.formula()
        weight = c.odd(c.rng.choice(WEIGHTS), BAD_WEIGHTS)
        lines.append(c.one(f"{weight} {formula}", f"{weight} {formula}", f"{formula}.", f"{formula}"))
        if c.rng.random() < 0.3:
            lines.append(c.rng.choice(LINES))
        lines += c.odd([], [[line] for line in ODD_LINES])
    lines = c.odd(lines, [lines[5:], [], lines[::-1], ["*New(person)", *lines]])
    if c.rng.random() < 0.04:
        lines.append(c.rng.choice(ODD_LINES))
    return "\n".join(lines).encode("utf-8", "replace")


def db(c: Choice) -> bytes:
    logic, lines = Logic(c, constants_only=True), []
    for _ in c.many(0, 8):
        name = c.rng.choice(sorted(PREDICATES))
        args = ", ".join(logic.term(sort) for sort in PREDICATES[name])
        atom = f"{c.odd(name, ['Cancer', 'mother'])}" + (
            f"({args})" if PREDICATES[name] or c.rng.random() < 0.3 else ""
        )
        sign = c.one("", "", "!", "?", "! ")
        tail = c.one("", "", "", " // why", " /* why */")
        lines.append(f"{sign}{atom}{tail}")
        if c.rng.random() < 0.2:
            ways = ["Mother(Anna) = Bob", "Bob = Mother(Bob)", "Mother(Carl) = Anna", "/* a\n b */", "person = {Anna, Dora}", "time = {4,\n5}", "// c",
                    "time = {0,...,6}", 'Likes(Bob, "a \\"b\\"")', "  ", 'food = {Soup, "x y"} // more']  # fmt: skip
            lines.append(c.rng.choice(ways))
    wrong = ["/* open", "Smokes(x)", "Smokes(person)", "0.6 Smokes(Anna)", "Smokes(Anna) 0.7", "---", "person = {A", "colour = {A}", "Smokes(Anna",
             "time = {5,...,2}", "person = {A} B", "Smokes = Anna", "Anna = Smokes(Bob)", "Smokes(Anna) Rain", "Mother(Anna) = Carl\nMother(Anna) = Bob",
             "@", "Smokes(Anna) /* open", "/* a */ Rain", "!Smokes(Anna)\nSmokes(Anna)", "Likes(Anna,Fish)\nLikes(Anna,Pie)", '!Likes(Anna,Fish)\n!Likes(Anna,Pie)\n!Likes(Anna,"a \\"b\\"")',
             f"time = {{0,...,{LONG}}}", f"At(Anna,{LONG})", "Smokes(Anna,", "Smokes(Anna;Bob)", "Mother(Anna) =", "Friends(Anna)", "= Anna", "!", '"x"',
             "Smokes(Zed)", "At(Anna, 77)", "person = {x}\nSmokes(x)", "Smokes(x1)", 'Smokes("x")', "Rain(", "Rain()", "Rain)"]  # fmt: skip
    lines += [c.rng.choice(wrong)] if c.rng.random() < 0.25 else []
    c.rng.shuffle(lines)
    return "\n".join(lines).encode("utf-8", "replace")


def logic_query(c: Choice) -> bytes:
    logic = Logic(c, constants_only=c.rng.random() < 0.5, plus=c.rng.random() < 0.1)
    wrong = ["", "#Nobody", "#{x: Rain}", "#{x,x: Smokes(x)}", "#{x: Friends(x,y)}", "#{", "Smokes(x) |", "| Rain", "*Smokes(Anna)", "+x", "Smokes(x", "Mother(Anna)",
             "Smokes(+x)", "At(x,t+1)", "#Smokes extra", "Nobody = Anna", "Smokes(Anna) | Rain | Rain"]  # fmt: skip
    way = c.rng.random()
    text = logic.formula()
    if way < 0.15:
        text = f"{text} | {logic.formula()}"
    elif way < 0.25:
        text = c.one(
            "Smokes", "Friends", "Rain", "Likes", "#Smokes", " #Friends", "Friends(Anna,y)", "Mother(x) = Anna"
        )
    elif way < 0.4:
        text = c.one(
            "#{x: Smokes(x)}",
            "#{x,y: Friends(x,y) ^ Smokes(x)}",
            "#{x: EXIST y Friends(x,y)}",
            f"#{{x: Smokes(x) ^ {Logic(c, constants_only=True).formula()}}}",
        )
    return c.odd(text, wrong).encode("utf-8", "replace")


def graph_query(c: Choice) -> bytes:
    def literal() -> str:
        site = c.rng.randrange(3)
        name = c.odd(c.one(f"X{site}", f'"X{site}"'), ["X9", '"open', "v", "X0(", *NAMES[:4]])
        return (
            f"{name}{c.one('=', '=', '!=')}{c.count(c.rng.randrange((2, 2, 3)[site]))}"
            if site == 2 or c.rng.random() < 0.7
            else name
        )

    def formula(depth: int) -> str:
        if depth > 2 or c.rng.random() < 0.4:
            return literal()
        if c.rng.random() < 0.3:
            return f"!{formula(depth + 1)}" if c.rng.random() < 0.5 else f"({formula(depth + 1)})"
        return f"{formula(depth + 1)} {c.odd(c.one('^', 'v', '=>', '<=>'), ['&', '||', 'and', ')', '(', '='])} {formula(depth + 1)}"

    text = formula(0)
    return c.odd(text, ["", text + " ^", text + ")", "(" + text, "(" * 3000 + text, "X2", "X0=", "&"]).encode(
        "utf-8", "replace"
    )


GENERATORS: dict[str, Callable[[Choice], bytes]] = {
    "uai": uai, "evid": evid, "fg": fg, "csv": csv_draws, "npz": npz_draws, "generators": generators, "json": document,
    "result": table, "mar": other_programs, "mln": mln, "db": db, "query": logic_query, "graph-query": graph_query,
}  # fmt: skip
