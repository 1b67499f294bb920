"""What charts show of many values: densities, correlations and counts."""

from __future__ import annotations

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, IntArray
from tertium.core.charts import Axis
from tertium.meta import correlation
from tertium.output.charts.axes import MAX_POINTS_WITH_FULL_RANGE, axis_limits

MAX_DOTS = MAX_POINTS_WITH_FULL_RANGE  # more are drawn as a density map
CELLS = 34  # of the density map, per axis
DENSITY_POINTS = 80


def both_finite(x: Axis, y: Axis) -> BoolArray:
    """Mask the rows in which both values are finite."""
    mask: BoolArray = np.isfinite(x.values) & np.isfinite(y.values)
    return mask


def finite_points(x: Axis, y: Axis) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the rows in which both values are finite, with these values."""
    rows = np.flatnonzero(both_finite(x, y))
    return rows, x.values[rows], y.values[rows]


def pearson(x: Axis, y: Axis) -> float:
    """Return Pearson's r over pairs of finite values; NaN if undefined.

    >>> x = Axis(name="x", values=np.array([1.0, 2, np.nan]))
    >>> pearson(x, Axis(name="y", values=np.array([2.0, 4, 5])))
    1.0
    """
    return float(correlation.correlate(x.values, y.values, both_finite(x, y)))


def count_cells(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count points per cell; those beyond the axes count in the border cells."""
    x_limits = axis_limits(x)
    y_limits = axis_limits(y)
    x_inside = np.clip(x, *x_limits)
    y_inside = np.clip(y, *y_limits)
    return np.histogram2d(x_inside, y_inside, bins=CELLS, range=(x_limits, y_limits))


def estimate_density(values: FloatArray, low: float, high: float) -> FloatArray:
    """Return a Gaussian kernel density (Silverman's bandwidth), (DENSITY_POINTS,), of mean 1."""
    if not values.size:
        return np.zeros(DENSITY_POINTS)
    inside = np.clip(values, low, high)
    counts, _ = np.histogram(inside, bins=DENSITY_POINTS, range=(low, high))
    first, third = np.percentile(values, [25, 75])
    deviation = values.std()
    spread = min(deviation, (third - first) / 1.34) or deviation
    step = (high - low) / DENSITY_POINTS
    width = max(1.06 * spread * values.size**-0.2 / step, 1.5)
    offsets = np.arange(-DENSITY_POINTS, DENSITY_POINTS + 1)
    kernel = np.exp(-0.5 * (offsets / width) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum())
    middle = smooth[DENSITY_POINTS : 2 * DENSITY_POINTS]
    density: FloatArray = middle / middle.mean()
    return density
