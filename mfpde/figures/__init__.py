"""Pictures of laws, distances and orders. Every function returns a matplotlib `Figure` and touches no global state.

    density(run)                 the law over time and angle
    snapshots(run, times)        the law at a few times, with the limit it should reach
    decay(series, rates=...)     distances against time, with predicted slopes
    order_plot(table)            errors against resolution
    energy(run)                  the interaction energy against time
    cluster_tree(run)            the clusters, their mergers and departures over ln t
    energy_staircase(run)        the interaction energy over ln t
    save(figure, path)           a file that appears whole or not at all

matplotlib is loaded when the first figure is made. What depends on the space the tokens live in is one `View` each (circle.py, sphere.py), chosen in laws.py.
"""

from mfpde.figures.curves import decay, energy, order_plot
from mfpde.figures.laws import density, snapshots
from mfpde.figures.lives import cluster_tree, energy_staircase
from mfpde.figures.style import save

__all__ = ["cluster_tree", "decay", "density", "energy", "energy_staircase", "order_plot", "save", "snapshots"]
