"""Kernels of sequences: tuples grow by links, are tested, decided and kept.

`rows`, int64, (n, tuples): the row of each stream. `known`, float64, (links, tuples): chances of links.
`scan`, int64, (tuples + 1,): exclusive scan of what becomes of each tuple. `flags`, int64, (tuples,): 1
for each that is to be kept, else 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda, types

from coincide.model.sequences.deciding import (
    NO,
    YES,
    told_by_ends,
    told_by_links,
    verdict_of,
    whole_probability,
)
from coincide.model.sequences.wholes import CHAIN, GATHERING, TRIANGLE
from coincide.model.templates.template import Buckets
from coincide.model.timestamps.protocol import numba_type
from gpu_kernels.kernels.compilation import THREADS, TILE, device_function, kernel
from gpu_kernels.kernels.join import F64_ARRAY, F64_CUBE, F64_TABLE, I64_ARRAY, I64_CUBE, I64_TABLE
from gpu_kernels.kernels.searching import at, owner_of


class LinkArrays(NamedTuple):
    """`coincide.model.sequences.making.Links` in device memory."""

    begins: Any  # int64, shape (n_left,)
    ends: Any  # int64, shape (n_left,)
    targets: Any  # int64, shape (links,)
    chances: Any  # float64, shape (links,), or empty


LINKS = types.NamedTuple([I64_ARRAY, I64_ARRAY, I64_ARRAY, F64_ARRAY], LinkArrays)


class Times(NamedTuple):
    """Min and max times of a stream."""

    first: Any  # int64, shape (n,)
    last: Any  # int64, shape (n,)


TIMES = types.NamedUniTuple(I64_ARRAY, 2, Times)


class Asked(NamedTuple):
    """What decides tuples: `coincide.model.sequences.making.Decision`."""

    lows: Any  # int64, shape (windows,)
    highs: Any  # int64, shape (windows,)
    at_least: float
    doubt: float
    wants: bool


ASKED = types.NamedTuple([I64_ARRAY, I64_ARRAY, types.float64, types.float64, types.boolean], Asked)


class Streams(NamedTuple):
    """Last edges and laws of the events of all streams, and where those of each place begin."""

    begins: Any  # int64, shape (places,)
    ends: Any  # int64, shape (events,)
    laws: Any  # int64, shape (events,)


STREAMS = types.NamedUniTuple(I64_ARRAY, 3, Streams)


class Work(NamedTuple):
    """What threads write to, each in its slot: `coincide.model.sequences.wholes.chain_work`.

    A slot is the last index, so that neighbours in memory are what neighbouring threads write at once.
    """

    events: Any  # int64, shape (2, places, slots): last edges and laws of a tuple
    cuts: Any  # int64, shape (2, room, slots)
    before: Any  # float64, shape (room, places + 2, slots)
    after: Any  # float64, shape (room, places + 2, slots)
    rows: Any  # float64, shape (2, places + 2, slots)


WORK = types.NamedTuple([I64_CUBE, I64_CUBE, F64_CUBE, F64_CUBE, F64_CUBE], Work)


@kernel(LINKS, types.int64, I64_TABLE, I64_ARRAY)
def count_links(links, place, rows, counts):
    """Count the links of the event of each tuple at a place."""
    i = cuda.grid(1)
    if i < counts.size:
        last = rows[place, i]
        counts[i] = links.ends[at(last)] - links.begins[at(last)]


@kernel(LINKS, types.int64, *[I64_ARRAY] * 2, I64_TABLE, F64_TABLE, I64_ARRAY, I64_TABLE, F64_TABLE)
def grow(links, place, scan, owners, rows, known, parents, new_rows, new_known):
    """Add to each tuple each event to which a link leads: `cpu_fallback.sequences.kernels.grow`.

    A thread takes every `THREADS`-th of a tile, so that what a warp writes lies together.
    """
    tile = np.int64(cuda.blockIdx.x)
    item = tile * TILE + np.int64(cuda.threadIdx.x)
    stop = min((tile + 1) * TILE, scan[at(scan.size - 1)])
    owner, past = owners[at(tile)], owners[at(tile + 1)] + 1
    while item < stop:
        owner = owner_of(scan, owner, past, item)
        link = links.begins[at(rows[place, owner])] + item - scan[at(owner)]
        for k in range(rows.shape[0]):
            new_rows[k, item] = rows[k, owner]
        new_rows[rows.shape[0], item] = links.targets[at(link)]
        for k in range(known.shape[0]):
            new_known[k, item] = known[k, owner]
        if links.chances.size:
            new_known[known.shape[0], item] = links.chances[at(link)]
        if parents.size:
            parents[at(item)] = owner
        item += THREADS


@kernel(I64_TABLE, types.int64, types.int64, types.int64, TIMES, TIMES, I64_ARRAY)
def flag_near(rows, place, lo, hi, before, new, flags):
    """Take the flag of tuples whose last event is surely too early or too late for that at a place."""
    i = cuda.grid(1)
    if i < flags.size:
        one, last = rows[place, i], rows[rows.shape[0] - 1, i]
        earliest = new.first[at(last)] - before.last[at(one)]
        latest = new.last[at(last)] - before.first[at(one)]
        if earliest > hi or latest < lo:
            flags[at(i)] = 0


@kernel(I64_TABLE, types.int64, I64_ARRAY, I64_ARRAY, I64_ARRAY)
def flag_others(rows, place, before, new, flags):
    """Take the flag of tuples whose last event is that at a place, by the numbers of events."""
    i = cuda.grid(1)
    if i < flags.size and before[at(rows[place, i])] == new[at(rows[rows.shape[0] - 1, i])]:
        flags[at(i)] = 0


@kernel(I64_ARRAY, I64_TABLE, I64_TABLE)
def keep(scan, given, kept):
    """Move the columns of the tuples that are to be kept together."""
    i = cuda.grid(1)
    if i < given.shape[1] and scan[at(i)] < scan[at(i + 1)]:
        for k in range(given.shape[0]):
            kept[k, scan[at(i)]] = given[k, i]


@device_function
def _judge(kind, asked, rows, known, start, streams, buckets, work, out, verdicts, flags):
    """Decide tuples from `start` on, a thread for each slot: `cpu_fallback.sequences.kernels.judge`."""
    slot = np.int64(cuda.grid(1))
    k = start + slot
    if slot >= work.events.shape[2] or k >= verdicts.size:
        return
    told = 0.0
    if kind == CHAIN:
        told = told_by_links(known[:, k], asked.at_least, asked.doubt, asked.wants)
    verdict = np.int64(YES)
    if told == 0.0:
        end, law = work.events[0, :, slot], work.events[1, :, slot]
        for i in range(streams.begins.size):
            event = streams.begins[i] + rows[i, k]
            end[i], law[i] = streams.ends[at(event)], streams.laws[at(event)]
        told = told_by_ends(kind, end, law, known[:, k], buckets, asked.lows, asked.highs)
        if told == 0.0:
            before = work.cuts[0, :, slot], work.before[:, :, slot]
            after = work.cuts[1, :, slot], work.after[:, :, slot]
            halves = before, after, work.rows[0, :, slot], work.rows[1, :, slot]
            told = whole_probability(kind, end, law, buckets, asked.lows, asked.highs, halves)
            verdict = np.int64(verdict_of(told, asked.at_least, asked.doubt))
    out[at(k)] = told
    verdicts[at(k)] = verdict
    flags[at(k)] = verdict != NO


_OF_JUDGES = (
    *(ASKED, I64_TABLE, F64_TABLE, types.int64, STREAMS, numba_type(Buckets), WORK),
    *(F64_ARRAY, I64_ARRAY, I64_ARRAY),
)


@kernel(*_OF_JUDGES)
def judge_chains(asked, rows, known, start, streams, buckets, work, out, verdicts, flags):
    """Decide tuples by windows from each event to the next."""
    _judge(CHAIN, asked, rows, known, start, streams, buckets, work, out, verdicts, flags)


@kernel(*_OF_JUDGES)
def judge_triangles(asked, rows, known, start, streams, buckets, work, out, verdicts, flags):
    """Decide tuples by three windows between three events."""
    _judge(TRIANGLE, asked, rows, known, start, streams, buckets, work, out, verdicts, flags)


@kernel(*_OF_JUDGES)
def judge_gatherings(asked, rows, known, start, streams, buckets, work, out, verdicts, flags):
    """Decide tuples by one width for all."""
    _judge(GATHERING, asked, rows, known, start, streams, buckets, work, out, verdicts, flags)


JUDGES = {CHAIN: judge_chains, TRIANGLE: judge_triangles, GATHERING: judge_gatherings}
"""One for each formula: together they would take the registers of the largest."""
