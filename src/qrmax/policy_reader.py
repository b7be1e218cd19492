"""Act by a policy exported by `run.export("policy.json")`. Plain Python: copy this file anywhere.

    policy = Policy("policy.json")
    action = policy.reset(observation, labels)     # the first action of an episode
    while not policy.over:
        observation, labels = ...                  # take the action in your world
        action = policy.step(observation, labels)

`labels` are the true propositions, or a dict of names to True and False. `policy.state`, that of
the reward machine, is tracked here; if it is stochastic, give it: `step(..., state="has_coffee")`.
"""

import json
import math
from functools import reduce
from hashlib import sha256
from operator import getitem
from pathlib import Path


class Policy:
    """A policy, and the state of its reward machine."""

    def __init__(self, path):
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        self.data = data = data if isinstance(data, dict) else {}
        text = json.dumps({**data, "sha256": None}, sort_keys=True).encode()
        if data.get("sha256") != sha256(b"qrmax policy 1" + text).hexdigest():
            raise ValueError(f"{path}: is damaged, or was not written by run.export(...)")
        self.machine, self.encoder = data["machine"], data["encoder"]
        self.buckets = {tuple(key): i for i, key in enumerate(self.encoder.get("keys", ()))}
        self.label_numbers = {frozenset(label): i for i, label in enumerate(data["labels"])}
        self.q, self.stage = self.machine["initial"], 0

    state = property(lambda self: self.machine["states"][self.q])
    success = property(lambda self: self.q in self.machine["success"])
    ended = property(lambda self: self.q in self.machine["terminal"])
    over = property(lambda self: self.ended or self.stage == self.data["horizon"])

    def reset(self, observation, labels=(), state=None):
        """Begin an episode; return the first action."""
        self.q, self.stage = self.machine["initial"], 0
        return self._act(observation, labels, state, reads=self.machine["reads_start"])

    def step(self, observation, labels=(), state=None):
        """Update the reward machine with the new labels; return the next action."""
        self.stage += not self.over
        return self._act(observation, labels, state, reads=True)

    def _act(self, observation, labels, state, reads):
        if isinstance(labels, str):
            raise TypeError(f"labels are {labels!r}; needed: a list of names, as [{labels!r}]")
        true = {n for n in labels if labels[n]} if isinstance(labels, dict) else set(labels)
        if state is not None:
            self.q = self.machine["states"].index(state)
        elif reads and not self.ended:
            targets = next(to for when, to in self.machine["cases"][self.q] if _holds(when, true))
            if len(targets) > 1:
                raise ValueError(f"{sorted(true)} in {self.state!r} is stochastic: give state=...")
            self.q = targets[0]
        if self.over:
            return None
        label = self.label_numbers.get(frozenset(true.intersection(self.data["names"])), -1)
        number = (self._bucket if "keys" in self.encoder else self._number)(observation, label)
        table = self.data["policy"][0 if self.data["horizon"] is None else self.stage]
        return self.data["first_action"] + (0 if number is None else table[number][self.q])

    def _number(self, observation, label):
        number = label * self.encoder["labelled"]
        for path, first, size in self.encoder["digits"]:
            digit = reduce(getitem, path, observation)
            if number < 0 or int(digit) != digit or not first <= digit < first + size:
                raise ValueError(f"the observation {observation!r} is not in the space trained on")
            number = number * size + int(digit) - first
        return number

    def _bucket(self, observation, label):
        key, x = [label * self.encoder["labelled"]] + [0] * self.encoder["words"], [1.0]
        for value, bounds in zip(_flat(observation), self.encoder["bounds"], strict=True):
            low, high = bounds or (-1.0, 1.0)
            scaled = 2.0 * (min(max(value, low), high) - low) / (high - low) - 1.0
            x.append(scaled if bounds else value / (1.0 + abs(value)))
        for row, top, word, shift in self.encoder["rows"]:
            total = 0.0
            for weight, part in zip(row, x, strict=True):
                total += weight * part
            key[word] |= min(max(math.floor(total), 0), top) << shift
        return self.buckets.get(tuple(key))  # None: training has not met it


def _holds(guard, true):  # a guard is a name, or a list of a sign and guards
    if isinstance(guard, str):
        return guard in true
    values = [_holds(part, true) for part in guard[1:]]
    return {"!": not any(values), "|": any(values), "&": all(values)}[guard[0]]


def _flat(x):
    x = x.tolist() if hasattr(x, "tolist") else x
    return [y for part in x for y in _flat(part)] if isinstance(x, list | tuple) else [float(x)]
