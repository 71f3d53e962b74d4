"""The row loop of one binary predicate: R(a,b) for one a and all b, visited in the order of the sweep.

Never imported: `emit.py` takes the text below the line and puts the system's number for `_R`. `row_keys_R`,
`support_R`, `delta_R`, `loop_chance_R`, `loop_delta_R`, `reclass_*_R` and the constants in capitals are generated.

A site b that is not touched by a join has the key of its class, so its chance is known without looking at it; the clock
runs over all members of a class at once and picks the candidates. When a site is visited, given all that happened
before, it is a candidate with exactly the probability of its full conditional (`move_chance`).

Where R(x,y) and R(y,x) are one atom (`SYMMETRIC_R`), the row of a holds the sites {a,b} with b after a in the order: a
leaves its class when its row begins, and all come back after the last row.
"""
# ruff: noqa: F821
# pyright: reportUndefinedVariable=false


# --- text ---


@helper
def in_row_R(s, a, b):
    """Whether {a,b} is a place of this row, and b in its class."""
    return not SYMMETRIC_R or s.node[b, POS] > s.node[a, POS]


@helper
def begin_row_R(d, c, s, a):
    """Marks what is no site and what is true; supports add up the changes of keys."""
    s.small[ROW_STAMP] += 1
    s.small[TOUCHED] = 0
    s.small[QUEUE] = 0
    s.small[ROW_ORBIT] = s.orbit_rows[a]
    row_keys_R(d, c, s, a, c.types[TYPES_A_R + a])
    if SYMMETRIC_R:
        leave_class(c.pool, s, a)
        s.small[SITES] = SIZE_B_R - 1 - s.node[a, POS]
    else:
        s.small[SITES] = SIZE_B_R - (1 if SAME_R else 0)
    if SAME_R:
        fresh(s, a)
        s.node[a, MARKS] = EXCLUDED
    for i in range(s.known_start[a], s.known_start[a + 1]):
        b = s.known_atoms[i]
        fresh(s, b)
        s.node[b, MARKS] |= EXCLUDED
        if in_row_R(s, a, b):
            s.small[SITES] -= 1
    h = LISTS_R + LIST * a
    for i in range(c.head[h], c.head[h] + c.head[h + LENGTH]):
        b = I(c.pool[i])
        fresh(s, b)
        if in_row_R(s, a, b) and not s.node[b, MARKS] & EXCLUDED:
            s.node[b, MARKS] |= TRUE
            push(s, b)
    support_R(d, c, s, a, c.types[TYPES_A_R + a], I(1))


@helper
def run_classes_R(d, c, s):
    """G and the candidates as if no site were touched."""
    for i in range(s.small[IN_USE]):
        h = LIST * s.in_use[i]
        key, count, at = s.classes[h + CLASS_KEY], s.classes[h + LENGTH], s.classes[h]
        j = chances(s, key + s.small[ROW_KEYS + (key & TYPE_B_R)])
        add_chance(s, c.sum_g, s.classes[h + CLASS_ORBIT], count * s.known[j, 0])
        rate = s.known[j, 1]
        m = first_tick(c.streams, c.remainder, I(0), count, rate)
        while m < count:
            make_candidate(s, I(c.pool[at + m]))
            m = first_tick(c.streams, c.remainder, m + 1, count, rate)


@helper
def base_key_R(s, b):
    return s.node[b, KEY] + s.small[ROW_KEYS + (s.node[b, KEY] & TYPE_B_R)]


@helper
def run_touched_R(d, c, s, a, touched):
    """What is no site leaves the sums; touched sites get the key that they have."""
    for i in range(touched):
        b = s.touched[i]
        if not in_row_R(s, a, b):
            continue
        if s.node[b, MARKS] & EXCLUDED:
            add_chance(s, c.sum_g, s.node[b, ORBIT], -s.known[chances(s, base_key_R(s, b)), 0])
        elif s.node[b, CHANGE] != 0:
            base = base_key_R(s, b)
            move_chance(s, c.streams, c.remainder, c.sum_g, b, base, base + s.node[b, CHANGE])


@helper
def bump_R(c, s, y, b, change):
    """A flip at y changes the key of b, if b is still to be visited."""
    if s.node[b, POS] > s.node[y, POS]:
        fresh(s, b)
        if not s.node[b, MARKS] & EXCLUDED:
            key = base_key_R(s, b) + s.node[b, CHANGE]
            s.node[b, CHANGE] += change
            move_chance(s, c.streams, c.remainder, c.sum_g, b, key, key + change)


# --- events ---


@helper
def flip_R(d, c, s, a, y, value):
    h, g = LISTS_R + LIST * a, LISTS_BACK_R + LIST * y
    if value:
        append(c.pool, c.blocks, c.head, h, y)
        append(c.pool, c.blocks, c.head, g, a)
    else:
        remove(c.pool, c.head, h, y)
        remove(c.pool, c.head, g, a)
    o = s.orbits[s.small[ROW_ORBIT] + s.node[y, ORBIT]]
    c.true_atoms[o] += 1 if value else -1
    if SYMMETRIC_R:
        c.true_atoms[s.mirror[o]] += 1 if value else -1
    reclass_far_R(d, c, y)
    delta_R(d, c, s, a, y, c.types[TYPES_A_R + a], I(1) if value else I(-1))


@helper
def visit_loop_R(d, c, s, a):
    """R(a,a), at its place in the row."""
    p = loop_chance_R(d, c, a)
    o = s.loop_orbits[a]
    c.sum_g[NOW, o] += p
    old, new = (c.types[TYPES_A_R + a] >> LOOP_R) & 1, I(draw(c.streams, p))
    if old != new:
        before = c.types[TYPES_A_R + a]
        c.types[TYPES_A_R + a] = before ^ (I(1) << LOOP_R)
        c.true_atoms[o] += new - old
        loop_delta_R(d, c, s, a, before, c.types[TYPES_A_R + a])


@helper
def row_R(d, c, s, a):
    """All sites R(a,b) in the order of the sweep: exactly as many single-site updates. Returns how many."""
    begin_row_R(d, c, s, a)
    touched = s.small[TOUCHED]
    run_classes_R(d, c, s)
    run_touched_R(d, c, s, a, touched)
    sites = s.small[SITES]
    if SAME_R and s.loop_free[a]:
        sites += 1
        push(s, a)
    while s.small[QUEUE] > 0:
        y = pop(s)
        if SAME_R and y == a:
            visit_loop_R(d, c, s, a)
            continue
        marks = s.node[y, MARKS]
        value = (marks & CANDIDATE) != 0
        if value != ((marks & TRUE) != 0):
            flip_R(d, c, s, a, y, value)
    reclass_near_R(d, c, a)
    if SYMMETRIC_R and s.node[a, POS] == SIZE_B_R - 1:
        for b in range(SIZE_B_R):
            join_class(c.pool, c.blocks, s, b, class_key_R(d, c, b))
    return sites
