#!/bin/sh
# What `make demo` runs: a grid, its symmetries, and what averaging over them does to the error.
set -eu
cd "$(dirname "$0")/.."
out=build/demo
mkdir -p "$out"

run() {
    printf '\n$ definetti'
    for word in "$@"; do
        case $word in *' '*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    code=0
    definetti "$@" || code=$?
    # 1: the answer is there and a diagnostic doubts it, which is worth seeing and no reason to stop
    [ "$code" -le 1 ] || exit "$code"
}

run info examples/grid.uai
run symmetries examples/grid.uai
run exact examples/grid.uai --query X0 --query X66 --query 'X0=1 ^ X1=1' -o "$out/exact.csv"
echo "
64 chains of 200 sweeps. First without symmetries, as any Gibbs sampler would do it:"
run marginals examples/grid.uai --sweeps 200 --seed 7 --query X0 --query X66 --query 'X0=1 ^ X1=1' \
    --symmetries none --estimator standard -o "$out/standard.csv"
echo "
Now as many sweeps again, each sample averaged over the orbits it stands for:"
run marginals examples/grid.uai --sweeps 200 --seed 7 --query X0 --query X66 --query 'X0=1 ^ X1=1' -o "$out/orbit.csv"
echo "
Both against the exact answer:"
run compare "$out/standard.csv" "$out/exact.csv"
run compare "$out/orbit.csv" "$out/exact.csv"

mse() {
    definetti compare "$1" "$out/exact.csv" --json | python -c 'import json, sys; print(json.load(sys.stdin)["mse"])'
}
plain=$(mse "$out/standard.csv")
sharp=$(mse "$out/orbit.csv")

echo "
Markov logic, never grounded: friends and smokers with transitive friendship. A thousand people make a billion ground
clauses; the symmetries of their names leave four numbers to estimate:"
run info examples/smokers-transitive.mln --domain person=1000
run symmetries examples/smokers-transitive.mln --domain person=1000
echo "
Three people, where every state can be enumerated:"
run exact examples/smokers-transitive.mln --domain person=3 -o "$out/three-exact.json"
run marginals examples/smokers-transitive.mln --domain person=3 --sampler gibbs --seed 7 -o "$out/three.json"
run compare "$out/three.json" "$out/three-exact.json"
echo "
A hundred people, a million ground clauses, where nothing else than sampling will do:"
run marginals examples/smokers-transitive.mln --domain person=100 --sweeps 500 --seed 7 \
    --query 'Smokes(Person1)' --query 'Friends(Person1,Person2) ^ Friends(Person2,Person3)'

python -c "
print('\nThe best of it: the grid above, with as many sweeps in both runs.')
print(f'mean squared error over all variables: {$plain:.3g} without symmetries, {$sharp:.3g} with them')
print(f'{$plain / $sharp:.0f} times smaller')"
echo "
With your own model, a .uai or .fg file or a Markov logic network (.mln):
  .venv/bin/definetti info MODEL                     what it is, and how large
  .venv/bin/definetti marginals MODEL -o out.csv     marginals with error bars, for --query Q or for every variable
  .venv/bin/definetti marginals --help               evidence, domains, samplers, how long to run
From Python: .venv/bin/python, then import definetti as dft; README.md has examples to copy."
