"""Ridge in features, kernel ridge and the Gaussian-process mean are one function, f = K(K + λ)⁻¹y.

Four computations that share no step reach it: least squares over the features, elimination in the joint Gaussian of
noisy and noiseless values, gradient descent with weight decay on the features' weights, and scikit-learn's three
estimators. The kernel is that of a random network's last hidden layer, with fewer or with more features than examples,
or that of an infinitely wide network.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Positive, Within
from steepest.data import digits, signs
from steepest.descent import descend
from steepest.judging import Check, Hypothesis, Rival, bound, require
from steepest.kernels import gram
from steepest.networks import mlp
from steepest.panels import Panel, panel, rival, seen, theory
from steepest.types import Key

WAYS = ("features: least squares", "features: descent with weight decay", "Gaussian: elimination",
    "scikit-learn Ridge", "scikit-learn KernelRidge", "scikit-learn GaussianProcessRegressor")  # fmt: skip


class Setting(NamedTuple):
    """Features of training points, then of test points, one matrix a kernel, and the labels of all points."""

    names: tuple[str, ...]
    features: list[np.ndarray]  # Φ, (m + k, N)
    y: np.ndarray  # (m + k,)


@dataclass(frozen=True)
class Representer(Claim):
    """Two classes of digits, features of random networks and the tangent kernel of an infinitely wide one."""

    train: Annotated[int, Within(2, 200)] = 40  # training points m [1]
    test: Annotated[int, Within(1, 150)] = 20  # test points [1]
    few: Count = 25  # features of the narrow network, fewer than m [neurons]
    many: Count = 300  # features of the wide network, more than m [neurons]
    ridge: Positive = 0.1  # λ, in units of the mean of K(x, x) over the training points [1]
    steps: Count = 4000  # steps of the descent with weight decay [steps]

    statement = (
        r"\Phi\,\mathop{\mathrm{argmin}}_\theta\ \tfrac12\|y-\Phi\theta\|^2+\tfrac\lambda2\|\theta\|^2"
        r"=\mathbb{E}\,[f\mid f(X)+\sqrt\lambda\,\varepsilon=y]=K(K+\lambda)^{-1}y,\quad K=\Phi\Phi^{\mathsf T}"
    )
    source = "ORF 543, lecture 10/31; Rasmussen and Williams 2006, chapters 2 and 6"
    corrections = (
        "The notes' kernels are strictly positive, ΣΣ a_i a_j K(x_i, x_j) > 0; their second example ⟨x, y⟩ is not, on "
        "more points than dimensions. It has to be ≥ 0, and K(K + λ)⁻¹ needs no more when λ > 0.",
        "The notes' λ belongs to the sum of the losses. Where the risk is their mean, as elsewhere in the notes, "
        "the same λ gives K(K + mλ)⁻¹y.",
    )
    remarks = (
        "Everything here is deterministic up to rounding: intervals are points, and the margin is 1e-10 of the largest "
        "output.",
        "The infinitely wide network has no finite set of features. Its Gram matrix over training and test points is "
        "factored as ΦΦᵀ, which gives features that are exact on these points.",
        "Descent contracts by (κ − 1)/(κ + 1) a step with κ = (λ_max + λ)/λ: enough steps are a hypothesis.",
    )
    full = {"train": 150, "test": 100, "few": 60, "many": 2000, "steps": 20_000}
    beyond = {"ridge": 1e-9}

    def setting(self, key: Key) -> Setting:
        for_data, for_few, for_many = jax.random.split(key, 3)
        data = signs(digits((3, 8), self.train + self.test, for_data))
        x = data.x - data.x[: self.train].mean(0)
        names, features = [], []
        for k, count in ((for_few, self.few), (for_many, self.many)):
            net = mlp((data.d, count, 1), "relu", c_w=2.0)
            names.append(f"{count} features")
            features.append(np.asarray(net.features(net.init(k), x)) / np.sqrt(count))
        wide = gram(mlp((data.d, self.many, 1), "relu", parameterized="ntk", c_w=2.0).limit(), np.asarray(x)).ntk
        values, vectors = np.linalg.eigh(wide)
        names.append("infinite width")
        features.append(vectors * np.sqrt(np.maximum(values, 0)))
        return Setting(tuple(names), features, np.asarray(data.y))

    def split(self, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Features of the training points, of all points, and λ."""
        inside = phi[: self.train]
        return inside, phi, self.ridge * float((inside**2).sum(1).mean())

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        conditions = []
        for phi in setting.features:
            inside, _, ridge = self.split(phi)
            conditions.append(float(np.linalg.norm(inside, 2) ** 2 / ridge + 1))
        worst = max(conditions)
        left = ((worst - 1) / (worst + 1)) ** self.steps
        return [
            require("largest condition number of K + λ", worst, "<=", 1e4, "float64 gives 1e-10 with a larger --ridge"),
            require("what descent leaves of its start", left, "<=", 1e-13, "more --steps, or a larger --ridge"),
        ]

    def kernel_ridge(self, setting: Setting, factor: float = 1.0) -> list[np.ndarray]:
        """K(x, X)(K + factor · λ)⁻¹y at all points, by the eigenvectors of K."""
        found = []
        for phi in setting.features:
            inside, every, ridge = self.split(phi)
            values, vectors = np.linalg.eigh(inside @ inside.T)
            weights = vectors @ (vectors.T @ setting.y[: self.train] / (values + factor * ridge))
            found.append(every @ inside.T @ weights)
        return found

    def predict(self, setting: Setting) -> Prediction:
        norms = []
        for phi in setting.features:
            inside, _, ridge = self.split(phi)
            kernel = inside @ inside.T
            a = np.linalg.solve(kernel + ridge * np.eye(self.train), setting.y[: self.train])
            norms.append(a @ kernel @ a)
        return Prediction(outputs=("kernel point", self.kernel_ridge(setting)), norm=("kernel", norms))

    def observe(self, setting: Setting, key: Key) -> Observation:
        y, outputs, norms = setting.y[: self.train], [], []
        for phi in setting.features:
            inside, every, ridge = self.split(phi)
            weights = _least_squares(inside, y, ridge)
            norms.append(weights @ weights)
            ours = every @ weights, every @ self.decayed(inside, y, ridge), _eliminate(inside, every, y, ridge)
            outputs.append([*ours, *(fit(inside, every, y, ridge) for fit in _PEERS)])
        return Observation(outputs=("kernel way point", outputs), norm=("kernel", norms))

    def decayed(self, phi: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
        """Weights after descent from zero on the sum of squares with weight decay λ."""
        top = float(np.linalg.norm(phi, 2) ** 2)
        optimizer = optax.chain(optax.add_decayed_weights(ridge), optax.sgd(2 / (top + 2 * ridge)))
        risk = lambda theta: 0.5 * jnp.sum((phi @ theta - y) ** 2)
        start = jnp.zeros(phi.shape[1])
        path = jax.jit(lambda start: descend(risk, start, optimizer, self.steps, record=self.steps))(start)
        return np.asarray(path.params)

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        expected, checks = predicted["outputs"][:, None], []
        off = np.abs(observed["outputs"] - expected) / np.abs(observed["outputs"]).max(-1, keepdims=True)
        for i, way in enumerate(WAYS):
            for name, points in (("training", slice(self.train)), ("test", slice(self.train, None))):
                name = f"{way}: largest relative difference, {name} points"
                checks.append(bound(name, off[:, i, points].max(), at_most=1e-10))
        norm = np.abs(observed["norm"] / predicted["norm"] - 1).max()
        return [*checks, bound("‖θ‖² / ‖f‖²_H − 1", norm, at_most=1e-10)]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        wrong = lambda factor: predicted.replace(outputs=("kernel point", self.kernel_ridge(setting, factor)))
        pinv = [self.split(phi)[1] @ np.linalg.pinv(self.split(phi)[0]) @ setting.y[: self.train]
            for phi in setting.features]  # fmt: skip
        squares = (predicted["outputs"][:, : self.train] ** 2).sum(1)
        flat = predicted.replace(norm=("kernel", squares))
        return [
            Rival("λ of the mean: K(K + mλ)⁻¹y", wrong(self.train), "the risk is a mean elsewhere in the notes"),
            Rival("λ/2 in the penalty: K(K + λ/2)⁻¹y", wrong(0.5), "½ forgotten on one side"),
            Rival("no λ: interpolation", predicted.replace(outputs=("kernel point", pinv)), "the limit λ → 0"),
            Rival("‖f‖²_H is the sum of squares of f", flat, "the norm of L² for that of the RKHS"),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        points = np.arange(self.test)
        found, expected = observed["outputs"][:, :, self.train :], predicted["outputs"][:, self.train :]
        off = np.abs(observed["outputs"] - predicted["outputs"][:, None]).max(-1)
        ways = np.arange(1, len(WAYS) + 1)
        named = [f"{self.few} features", f"{self.many} features", "infinite width"]
        return (
            panel("Test points, infinite width", "test point", "output", theory(points, expected[-1], "K(K + λ)⁻¹y"),
                *(seen(points, found[-1, i], WAYS[i], kind="points", shade=i / 2) for i in range(3))),
            panel("All ways agree to rounding", "way, in the order of the table", "largest difference",
                *(seen(ways, np.maximum(off[i], 1e-17), named[i], kind="points", shade=i / 2) for i in range(3)),
                rival(ways, 0 * ways + 1e-10, "margin"), log="y"),
        )  # fmt: skip


def _least_squares(phi: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """The weights of ridge regression as ordinary least squares with N more rows, [Φ; √λ I] θ ≈ [y; 0]."""
    rows = np.concatenate([phi, np.sqrt(ridge) * np.eye(phi.shape[1])])
    return np.linalg.lstsq(rows, np.concatenate([y, np.zeros(phi.shape[1])]))[0]


def _eliminate(inside: np.ndarray, every: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """The mean of f given y, by eliminating the block of y from the joint covariance of (y, f), a column at a time."""
    m, joint = len(inside), np.concatenate([inside, every]) @ np.concatenate([inside, every]).T
    joint[:m, :m] += ridge * np.eye(m)
    mean = np.concatenate([y, np.zeros(len(every))])  # innovations of y first, then −E[f | y]
    for k in range(m):
        gain = joint[k + 1 :, k] / joint[k, k]
        joint[k + 1 :, k + 1 :] -= np.outer(gain, joint[k, k + 1 :])
        mean[k + 1 :] -= gain * mean[k]
    return -mean[m:]


def _fitted(peer: Any, **choices: Any) -> Callable:
    """Outputs at all points of one of scikit-learn's estimators."""
    return lambda inside, every, y, ridge: peer(alpha=ridge, **choices).fit(inside, y).predict(every)


_PEERS = (
    _fitted(Ridge, fit_intercept=False, solver="svd"),
    _fitted(KernelRidge, kernel="linear"),
    _fitted(GaussianProcessRegressor, kernel=DotProduct(sigma_0=0.0, sigma_0_bounds="fixed"), optimizer=None),
)
