"""Draws to disk while the chains run: .npz with packed bits, .csv as `marginals --samples` reads it, .parquet."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from definetti.errors import ModelError
from definetti.files import replacement

if TYPE_CHECKING:
    from definetti.inference.draws.sample import Samples

COMMA, NEWLINE, ZERO = np.frombuffer(b",\n0", np.uint8)
MOST_COLUMNS = 20_000  # of a table


def save_samples(samples: Samples, path: str | PathLike[str]) -> None:
    """As .npz, .csv or .parquet; nobody ever sees half of a file."""
    path = Path(path)
    writers: dict[str, Callable[[Samples, Path], None]] = {".npz": _npz, ".csv": _csv, ".parquet": _parquet}
    if path.suffix not in writers:
        raise ModelError(f"draws are written as {', '.join(writers)}; got '{path}'")
    if path.suffix != ".npz" and samples.variables > MOST_COLUMNS:
        raise ModelError(f"a table of {samples.variables:,} columns: write .npz, which holds bits")
    with replacement(path) as beside:
        writers[path.suffix](samples, beside)


def _npz(samples: Samples, path: Path) -> None:
    """An archive for `numpy.load`: `bits` uint8[draws, chains, bytes] (`numpy.unpackbits` along the last axis, the
    first `variables` of them), or `values` uint8[draws, chains, variables] where some have more than two; `names`."""
    binary = samples.binary
    width = -(-samples.variables // 8) if binary else samples.variables
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        with archive.open("bits.npy" if binary else "values.npy", "w", force_zip64=True) as member:
            head = {"descr": "|u1", "fortran_order": False, "shape": (samples.draws, samples.chains, width)}
            np.lib.format.write_array_header_1_0(member, head)  # type: ignore[arg-type]
            for batch in samples.packed() if binary else samples:
                member.write(np.ascontiguousarray(batch).data)
        facts = {"names": np.array(samples.names), "cards": samples.cards, "variables": np.array(samples.variables)}
        for name, array in facts.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def _csv(samples: Samples, path: Path) -> None:
    """A row per draw and chain, with a column `chain`."""
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(["chain", *samples.names])
    plain = samples.cards.max(initial=1) <= 10
    prefixes = [np.frombuffer(str(c).encode(), np.uint8) for c in range(samples.chains)]
    with path.open("wb") as file:
        file.write(head.getvalue().encode())
        for batch in samples:
            if plain:
                line = np.full((len(batch), 2 * samples.variables + 1), COMMA)  # after the chain: ,0,1,0 and so on
                line[:, -1] = NEWLINE
                for c, prefix in enumerate(prefixes):
                    line[:, 1::2] = batch[:, c] + ZERO
                    start = np.broadcast_to(prefix, (len(batch), len(prefix)))
                    file.write(np.ascontiguousarray(np.concatenate([start, line], axis=1)).data)
                continue
            for draw in batch:
                rows = (",".join([str(c), *map(str, row)]) for c, row in enumerate(draw.tolist()))
                file.write(("\n".join(rows) + "\n").encode())


def _parquet(samples: Samples, path: Path) -> None:
    """A row per draw and chain: `chain`, `draw`, and a column for each variable."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError:
        raise ModelError("Parquet needs pyarrow: pip install 'definetti[parquet]'") from None

    kind = pa.bool_() if samples.binary else pa.uint8()
    columns = [pa.field(name, kind) for name in samples.names]
    schema = pa.schema([pa.field("chain", pa.int32()), pa.field("draw", pa.int64()), *columns])
    at = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for batch in samples:
            draws, chains, _ = batch.shape
            chain = pa.array(np.tile(np.arange(chains, dtype=np.int32), draws))
            draw = pa.array(np.repeat(np.arange(at, at + draws), chains))
            values = np.ascontiguousarray(batch.reshape(draws * chains, -1).T)
            arrays = [pa.array(row.view(bool) if samples.binary else row) for row in values]
            writer.write_table(pa.Table.from_arrays([chain, draw, *arrays], schema=schema))
            at += draws
