r"""The model: softmax self-attention and the Cauchy problem for the law of its tokens.

    d_t mu + div( mu v[mu] ) = 0,     v[mu](x) = P_x V m(x)
    m(x) = int y e^{beta <Qx,Ky>} mu(dy) / Z(x),     Z(x) = int e^{beta <Qx,Ky>} mu(dy)

Tokens are column vectors. The score is `<Qx, Ky> = <Ax, y>` with `A = K^T Q`, so `Q` and `K` enter through `A` alone.
`beta = inf` is the zero-temperature equation, in which a token attends only to the maximisers of its score.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mfpde.errors import InputError

if TYPE_CHECKING:
    from mfpde.geometry import Geometry
    from mfpde.initial import InitialLaw


def _matrix(name: str, values: Any) -> np.ndarray:
    matrix = np.array(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{name} must be a square matrix.\n  {name} has shape {matrix.shape}.\n  Give a d x d array, tokens live in R^d.")
    if not np.isfinite(matrix).all():
        raise InputError(f"{name} holds NaN or infinite entries.\n  {name} = {matrix.tolist()}\n  Give finite numbers.")
    matrix.flags.writeable = False
    return matrix


@dataclass(frozen=True, eq=False)
class Attention:
    """One softmax attention head acting on column vectors in R^d.

    Parameters
    ----------
    Q, K, V : array_like, shape (d, d)
        Query, key and value matrices; any real matrices, singular and non-symmetric ones included.
    beta : float
        Inverse temperature in [0, inf]. `0` averages all tokens, `inf` attends to the maximisers of the score.

    Raises
    ------
    InputError
        If the matrices are not square of one size, hold NaN or infinities, or `beta` is negative or NaN.

    Examples
    --------
    >>> import mfpde as mf
    >>> attention = mf.Attention(Q=[[1, 0], [0, 2]], K=[[1, 0], [0, 1]], V=[[1, 0], [0, 0.5]], beta=10)
    >>> attention.A
    array([[1., 0.],
           [0., 2.]])
    >>> attention.drift
    array([[1., 0.],
           [0., 1.]])
    """

    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    beta: float
    A: np.ndarray = field(init=False, repr=False)
    drift: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("Q", "K", "V"):
            object.__setattr__(self, name, _matrix(name, getattr(self, name)))
        shapes = {name: getattr(self, name).shape for name in ("Q", "K", "V")}
        if len(set(shapes.values())) > 1:
            given = ", ".join(f"{name} is {shape}" for name, shape in shapes.items())
            raise InputError(f"Q, K and V must have one common size.\n  {given}.\n  Give three d x d matrices.")
        try:
            beta = float(self.beta)
        except (TypeError, ValueError):
            raise InputError(f"beta must be a number.\n  beta = {self.beta!r}\n  Give a float in [0, inf].") from None
        if not beta >= 0:  # catches NaN too
            raise InputError(f"beta must lie in [0, inf].\n  beta = {beta}\n  A negative temperature is -A with a positive beta: change the sign of Q.")
        object.__setattr__(self, "beta", beta)
        for name, product in (("A", self.K.T @ self.Q), ("drift", self.V @ (self.K.T @ self.Q))):
            product.flags.writeable = False
            object.__setattr__(self, name, product)

    @classmethod
    def identity(cls, dim: int, beta: float) -> Attention:
        """Q = K = V = I in R^dim: the model of Geshkovski, Letrouit, Polyanskiy and Rigollet (arXiv 2312.10794)."""
        eye = np.eye(dim)
        return cls(eye, eye, eye, beta)

    @classmethod
    def from_weights(cls, W_Q: Any, W_K: Any, W_V: Any, beta: float) -> Attention:
        """From machine-learning weights, which act on row vectors: `X W_Q`, `X W_K`, `X W_V`.

        `W_Q` and `W_K` may be rectangular, shape (d, d_head): only `A = W_K W_Q^T` matters, and it is kept with `K = I`.
        """
        query, key, value = (np.asarray(W, dtype=np.float64) for W in (W_Q, W_K, W_V))
        if query.ndim != 2 or query.shape != key.shape:
            raise InputError(
                "W_Q and W_K must have one common shape (d, d_head).\n"
                f"  W_Q is {query.shape}, W_K is {key.shape}.\n"
                "  Give the weights of one head."
            )
        if query.shape[0] == query.shape[1]:
            return cls(query.T, key.T, value.T, beta)
        return cls(key @ query.T, np.eye(query.shape[0]), value.T, beta)

    @property
    def dim(self) -> int:
        """Dimension d of the space the tokens live in."""
        return self.Q.shape[0]

    @property
    def sharpness(self) -> float:
        """`beta |A|` with the spectral norm: the largest score; the kernel of attention is as wide as its inverse square root."""
        return self.beta * float(np.linalg.norm(self.A, 2))

    def __repr__(self) -> str:
        def show(matrix: np.ndarray) -> str:
            return "I" if np.array_equal(matrix, np.eye(self.dim)) else np.array2string(matrix, separator=", ", precision=4).replace("\n", "")

        return f"Attention(Q={show(self.Q)}, K={show(self.K)}, V={show(self.V)}, beta={self.beta:g})"


@dataclass(frozen=True, eq=False)
class Problem:
    """The Cauchy problem: an attention head, the space of the tokens, their initial law and a final time.

    Raises `InputError` if the dimensions do not fit or `t_end` is not a finite number >= 0.

    Examples
    --------
    >>> import mfpde as mf
    >>> mf.Problem(mf.Attention.identity(2, beta=4), mf.Circle(), mf.initial.uniform(mf.Circle()), t_end=1.0)
    Problem on Circle(): Attention(Q=I, K=I, V=I, beta=4), initial law uniform, t in [0, 1]
    """

    attention: Attention
    geometry: Geometry
    initial: InitialLaw
    t_end: float

    def __post_init__(self) -> None:
        attention, geometry = self.attention, self.geometry
        if attention.dim != geometry.dim:
            given = ", ".join(f"{name} is {getattr(attention, name).shape}" for name in ("Q", "K", "V"))
            wanted = f"{geometry.dim}x{geometry.dim}"
            raise InputError(
                f"Attention acts on R^{attention.dim}, but {geometry!r} lives in R^{geometry.dim}.\n  {given}.\n"
                f"  Give {wanted} matrices, e.g. Attention.identity(dim={geometry.dim}, beta=4), or choose another geometry."
            )
        if self.initial.geometry != geometry:
            raise InputError(f"The initial law lives on {self.initial.geometry!r}, the problem on {geometry!r}.\n  Build the law for the problem's geometry.")
        if not (np.isfinite(self.t_end) and self.t_end >= 0):
            raise InputError(f"t_end must be a finite number >= 0.\n  t_end = {self.t_end!r}")
        object.__setattr__(self, "t_end", float(self.t_end))

    def __repr__(self) -> str:
        return f"Problem on {self.geometry!r}: {self.attention!r}, initial law {self.initial!r}, t in [0, {self.t_end:g}]"
