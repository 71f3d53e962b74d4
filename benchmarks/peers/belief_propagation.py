"""Loopy belief propagation on any factor graph, to a fixed point: fast, with an error that no time removes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from peers.problem import GOAL, Problem

CANNOT = {"reading": "no program"}
CLOSE, DAMPED, MOST = 1e-8, 0.5, 1000


def run(problem: Problem, limit: float) -> dict[str, Any]:
    began = time.process_time()
    q = int(problem.cards.max())
    impossible = np.where(np.arange(q) < problem.cards[:, None], 0.0, -np.inf)
    groups = [(scopes, tables.reshape(len(scopes), *tables.shape[1:])) for scopes, tables in problem.by_shape]
    messages = [[np.zeros((len(s), t.shape[1 + a])) for a in range(s.shape[1])] for s, t in groups]
    set_up, rounds, change = time.process_time() - began, 0, 1.0
    began = time.process_time()
    while change > CLOSE and rounds < MOST and time.process_time() - began < limit:
        total, change = _beliefs(impossible, groups, messages), 0.0
        for (scopes, tables), into in zip(groups, messages, strict=True):
            outward = [total[scopes[:, a], : m.shape[1]] - m for a, m in enumerate(into)]
            for a, old in enumerate(into):
                fresh = _message(tables, outward, a)
                change = max(change, float(np.abs(fresh - old).max()))
                into[a] = fresh if scopes.shape[1] == 1 else DAMPED * old + (1 - DAMPED) * fresh
        rounds += 1
    total = _beliefs(impossible, groups, messages)
    weights = np.exp(total - total.max(axis=1, keepdims=True))
    means = weights / weights.sum(axis=1, keepdims=True)
    seconds, kl = time.process_time() - began, problem.divergence(means)
    note = "" if change <= CLOSE else "no fixed point"
    return {"set_up": set_up, "seconds": seconds if kl < GOAL else None, "kl": kl, "spent": seconds, "note": note}


def _beliefs(start: np.ndarray, groups: list, messages: list) -> np.ndarray:
    total = start.copy()
    for (scopes, _), into in zip(groups, messages, strict=True):
        for a, message in enumerate(into):
            for value in range(message.shape[1]):
                total[:, value] += np.bincount(scopes[:, a], weights=message[:, value], minlength=len(total))
    return total


def _message(tables: np.ndarray, outward: list[np.ndarray], to: int) -> np.ndarray:
    """Log messages of factors to their variable number `to`, of maximum 0."""
    joint = tables.copy()
    for a, message in enumerate(outward):
        if a != to:
            joint = joint + message.reshape(len(message), *(-1 if b == a else 1 for b in range(len(outward))))
    axes = tuple(1 + b for b in range(len(outward)) if b != to)
    most = joint.max(axis=axes, keepdims=True)
    out = np.log(np.exp(joint - most).sum(axis=axes)) + most.reshape(len(joint), -1) if axes else joint
    return out - out.max(axis=1, keepdims=True)
