r"""Solutions in closed form or to spectral accuracy: what every method is measured against.

Nothing here knows a mesh or a time step. Derivations in docs/theory; each function is tested against an independent computation.

    poisson_law           beta = 0: the Poisson kernel stays one
    watanabe_strogatz     beta = 0: any law moves by a Moebius map, three numbers that depend on time
    growth_rate           how fast a Fourier mode grows on the uniform law
    merge_time            two clusters: the time until their distance has fallen
    two_atom_gap          two clusters: their distance at a time
    von_mises_attention   log Z and m of von Mises laws, at any temperature
"""

from mfpde.exact.growth import growth_rate
from mfpde.exact.kuramoto import MoebiusLaw, poisson_law, poisson_radius, watanabe_strogatz
from mfpde.exact.two_clusters import log_merge_time, merge_time, two_atom_gap
from mfpde.exact.von_mises import von_mises_attention

__all__ = [
    "MoebiusLaw",
    "growth_rate",
    "log_merge_time",
    "merge_time",
    "poisson_law",
    "poisson_radius",
    "two_atom_gap",
    "von_mises_attention",
    "watanabe_strogatz",
]
