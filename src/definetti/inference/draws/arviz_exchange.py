"""Draws to ArviZ and back: one labelled array (chain, draw, variable), never one array per variable."""

from __future__ import annotations

import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.errors import ModelError

if TYPE_CHECKING:
    from definetti.inference.draws.sample import Samples
    from definetti.model.graph.factors import FactorGraph

NAME = "x"  # of the array in the group `posterior`


def to_arviz(samples: Samples) -> Any:
    """A DataTree (ArviZ 1, from Python 3.12 on) or InferenceData (ArviZ 0, Python 3.11) with the group `posterior`."""
    try:
        import xarray

        old = int(version("arviz").split(".")[0]) < 1
    except (ImportError, PackageNotFoundError):
        raise ModelError("this needs ArviZ: pip install 'definetti[arviz]'") from None
    values = samples.array()
    coords = {
        "chain": np.arange(samples.chains),
        "draw": np.arange(samples.draws),
        "variable": np.array(samples.names, dtype=object),
    }
    found = {"sampler": samples.sampler, "seed": samples.seed, "every": samples.every, "inference_library": "definetti"}
    array = xarray.DataArray(values, coords=coords, dims=("chain", "draw", "variable"))
    dataset = xarray.Dataset({NAME: array}, attrs=found)
    if not old:
        return xarray.DataTree.from_dict({"posterior": dataset})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ 0 announces ArviZ 1 when it is loaded
        import arviz
    return arviz.InferenceData(posterior=dataset)


def from_arviz(data: object, model: FactorGraph) -> np.ndarray:
    """The draws of an ArviZ object as an array that `marginals` takes, variables in the model's order.

    Parameters
    ----------
    data : DataTree, InferenceData or xarray.Dataset
        With a group `posterior`: an array for each variable, or one array whose labels are the variables.
    model : FactorGraph
        Whose states they are.

    Returns
    -------
    numpy.ndarray
        int64[chains, draws, variables].

    Raises
    ------
    ModelError
        Where names or values do not fit the model.

    Examples
    --------
    >>> import xarray, definetti as dft
    >>> model = dft.factor_graph({"rain": 2, "wet": 2}, [(["rain", "wet"], [[9, 1], [1, 4]])])
    >>> data = xarray.Dataset({name: (("chain", "draw"), [[0, 1, 1]]) for name in ("wet", "rain")})
    >>> dft.from_arviz(data, model).shape
    (1, 3, 2)
    """
    from definetti.inference.draws.samples import as_array

    if getattr(model, "kind", None) != "graph":
        raise ModelError("draws in ArviZ are about the variables of a factor graph; dft.ground(model) makes one")
    return as_array(data, model)
