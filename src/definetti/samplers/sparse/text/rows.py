"""The row loop of one binary predicate: R(a,b) for one a and all b, visited in the order of the sweep.

A site b that is not touched by a join has the key of its class, so its chance is known without looking at it; the clock
runs over all members of a class at once and picks the candidates. When a site is visited, given all that happened
before, it is a candidate with exactly the probability of its full conditional (`move_chance`).

Where R(x,y) and R(y,x) are one atom (`symmetric`), the row of a holds the sites {a,b} with b after a in the order: a
leaves its class when its row begins, and all come back after the last row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What differs from predicate to predicate; texts are expressions of the kernel."""

    number: int
    types: str  # where the types of a start
    lists: str  # where the lists of a start
    back: str  # where the lists of b start
    size: str  # how many b there are
    same: bool  # a and b have one sort
    symmetric: bool
    held: bool  # hard formulas speak of R(a,b)
    mask: int  # of the bits of b in a class key
    held_loop: bool  # of R(a,a)
    loop: int  # the position of R(a,a) among the bits of a type
    chance: str  # functions: of R(a,a)
    near: str  # after a change of the list of a
    far: str  # after a change of the list of b
    delta: tuple[str, ...]  # where the lists of b start that its flip walks through


def row_start(row: Row) -> str:
    """What is no site, what is true, and what joins add."""
    r = row.number
    return f'''

@helper
def in_row_{r}(s, a, b):
    """Whether {{a,b}} is a place of this row, and b in its class."""
    return not {row.symmetric} or s.node[b, POS] > s.node[a, POS]


@helper
def base_key_{r}(s, b):
    return s.node[b, KEY] + s.small[ROW_KEYS + (s.node[b, KEY] & {row.mask})]


@helper
def begin_row_{r}(d, c, s, a):
    """Marks what is no site and what is true; supports add up the changes of keys."""
    s.small[ROW_STAMP] += 1
    s.small[TOUCHED] = 0
    s.small[QUEUE] = 0
    s.small[ROW_ORBIT] = s.orbit_rows[a]
    row_keys_{r}(d, c, s, a, c.types[{row.types} + a])
    if {row.symmetric}:
        leave_class(c.pool, s, a)
        s.small[SITES] = {row.size} - 1 - s.node[a, POS]
    else:
        s.small[SITES] = {row.size} - (1 if {row.same} else 0)
    if {row.same}:
        fresh(s, a)
        s.node[a, MARKS] = EXCLUDED
    for i in range(s.known_start[a], s.known_start[a + 1]):
        b = s.known_atoms[i]
        fresh(s, b)
        s.node[b, MARKS] |= EXCLUDED
        if in_row_{r}(s, a, b):
            s.small[SITES] -= 1
    h = {row.lists} + LIST * a
    for i in range(c.head[h], c.head[h] + c.head[h + LENGTH]):
        b = I(c.pool[i])
        fresh(s, b)
        if in_row_{r}(s, a, b) and not s.node[b, MARKS] & EXCLUDED:
            s.node[b, MARKS] |= TRUE
            push(s, b)
    if {row.held}:
        for i in range(s.watch_length[a]):
            s.watch_keys[i] = base_key_{r}(s, I(s.watched[s.watch_start[a] + i]))
'''


def row_candidates(row: Row) -> str:
    """Chances of whole classes, then of the sites that a join or a flip touches."""
    r, end = row.number, f"{row.back} + LIST * b"
    lists = "".join(f"\n        prefetch(c.pool, c.head[{found} + LIST * b])" for found in row.delta)
    return f'''

@helper
def run_classes_{r}(d, c, s):
    """G and ticks as if no site were touched. What is ticked is kept behind the touched, as a place in the pool;
    returns how many."""
    ticks, behind = I(0), s.touched.shape[0] >> 1
    for i in range(s.small[IN_USE]):
        h = LIST * s.in_use[i]
        key, count, at = s.classes[h + CLASS_KEY], s.classes[h + LENGTH], s.classes[h]
        j = chances(s, key + s.small[ROW_KEYS + (key & {row.mask})])
        add_chance(s, c.sum_g, s.classes[h + CLASS_ORBIT], count * s.known[j, 0])
        rate = s.known[j, 1]
        m = first_tick(c.streams, c.remainder, I(0), count, rate)
        while m < count:
            prefetch(c.pool, at + m)
            s.touched[behind + ticks] = at + m
            ticks += 1
            m = first_tick(c.streams, c.remainder, m + 1, count, rate)
    return ticks


@helper
def find_ticked_{r}(d, c, s, ticks):
    """The nodes that were ticked."""
    behind = s.touched.shape[0] >> 1
    for i in range(behind, behind + ticks):
        b = I(c.pool[s.touched[i]])
        s.touched[i] = b
        prefetch(s.node, LIST * b)
        prefetch(c.head, {end})


@helper
def make_candidates_{r}(d, c, s, ticks):
    behind = s.touched.shape[0] >> 1
    for i in range(behind, behind + ticks):
        b = s.touched[i]
        prefetch(c.pool, c.head[{end}]){lists}
        make_candidate(s, b)


@helper
def run_touched_{r}(d, c, s, a, touched):
    """What is no site leaves the sums; touched sites get the key that they have."""
    for i in range(touched):
        b = s.touched[i]
        if not in_row_{r}(s, a, b):
            continue
        if s.node[b, MARKS] & EXCLUDED:
            add_chance(s, c.sum_g, s.node[b, ORBIT], -s.known[chances(s, base_key_{r}(s, b)), 0])
        elif s.node[b, CHANGE] != 0:
            base = base_key_{r}(s, b)
            move_chance(s, c.streams, c.remainder, c.sum_g, b, base, base + s.node[b, CHANGE])


@helper
def bump_{r}(c, s, y, b, change):
    """A flip at y changes the key of b, if b is still to be visited."""
    if s.node[b, POS] > s.node[y, POS]:
        fresh(s, b)
        if not s.node[b, MARKS] & EXCLUDED:
            key = base_key_{r}(s, b) + s.node[b, CHANGE]
            s.node[b, CHANGE] += change
            move_chance(s, c.streams, c.remainder, c.sum_g, b, key, key + change)
'''


def row_watch(row: Row) -> str:
    """Which sites have been free."""
    r = row.number
    return f'''

@helper
def watch_row_{r}(s, a):
    """Sites that hard formulas left free at their visit need not be watched any longer. A flip at a site changes its
    own class, so its key is what the row began with and what was added before the visit."""
    i = I(0)
    while i < s.watch_length[a]:
        at, end = s.watch_start[a] + i, s.watch_start[a] + s.watch_length[a] - 1
        b = I(s.watched[at])
        change = s.node[b, CHANGE] if s.node[b, STAMP] == s.small[ROW_STAMP] else I(0)
        if in_row_{r}(s, a, b) and hard_count(s, s.watch_keys[i] + change) == 0:
            s.watched[at] = s.watched[end]
            s.watched[end] = b
            s.watch_length[a] -= 1
            s.watch_keys[i] = s.watch_keys[s.watch_length[a]]
        else:
            i += 1
'''


def row_flips(row: Row) -> str:
    """What a flip does, and the visit of R(a,a)."""
    r = row.number
    return f'''

@helper
def flip_{r}(d, c, s, a, y, value):
    h, g = {row.lists} + LIST * a, {row.back} + LIST * y
    if value:
        append(c.pool, c.blocks, c.head, h, y)
        append(c.pool, c.blocks, c.head, g, a)
    else:
        remove(c.pool, c.head, h, y)
        remove(c.pool, c.head, g, a)
    o = s.orbits[s.small[ROW_ORBIT] + s.node[y, ORBIT]]
    c.true_atoms[o] += 1 if value else -1
    if {row.symmetric}:
        c.true_atoms[s.mirror[o]] += 1 if value else -1
    {row.far}(d, c, s, y)
    delta_{r}(d, c, s, a, y, c.types[{row.types} + a], I(1) if value else I(-1))


@helper
def visit_loop_{r}(d, c, s, a):
    """R(a,a), at its place in the row."""
    p = {row.chance}(d, c, s, a)
    o = s.loop_orbits[a]
    c.sum_g[NOW, o] += p
    if {row.held_loop} and p > 0.0 and p < 1.0:
        c.live[{row.types} + a] |= I(1) << {row.loop}
    old, new = (c.types[{row.types} + a] >> {row.loop}) & 1, I(draw(c.streams, p))
    if old != new:
        before = c.types[{row.types} + a]
        c.types[{row.types} + a] = before ^ (I(1) << {row.loop})
        c.true_atoms[o] += new - old
        loop_delta_{r}(d, c, s, a, before, c.types[{row.types} + a])

'''


def row_events(row: Row) -> str:
    """The visits of a row."""
    r = row.number
    return f'''

@helper
def row_{r}(d, c, s, a):
    """All sites R(a,b) in the order of the sweep: exactly as many single-site updates. Returns how many."""
    begin_row_{r}(d, c, s, a)
    ticks = run_classes_{r}(d, c, s)
    find_ticked_{r}(d, c, s, ticks)
    support_{r}(d, c, s, a, c.types[{row.types} + a], I(1))
    touched = s.small[TOUCHED]
    make_candidates_{r}(d, c, s, ticks)
    run_touched_{r}(d, c, s, a, touched)
    sites = s.small[SITES]
    if {row.same} and s.loop_free[a]:
        sites += 1
        push(s, a)
    while s.small[QUEUE] > 0:
        y = pop(s)
        if {row.same} and y == a:
            visit_loop_{r}(d, c, s, a)
            continue
        marks = s.node[y, MARKS]
        value = (marks & CANDIDATE) != 0
        if value != ((marks & TRUE) != 0):
            flip_{r}(d, c, s, a, y, value)
    if {row.held}:
        watch_row_{r}(s, a)
    {row.near}(d, c, s, a)
    if {row.symmetric} and s.node[a, POS] == {row.size} - 1:
        for b in range({row.size}):
            join_class(c.pool, c.blocks, s, b, class_key_{r}(d, c, s, b))
    return sites
'''
