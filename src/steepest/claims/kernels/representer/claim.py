"""Ridge in features, kernel ridge and the Gaussian-process mean are one function, f = K(K + λ)⁻¹y.

Four computations that share no step reach it: least squares over the features, elimination in the joint Gaussian of
noisy and noiseless values, gradient descent with weight decay on the features' weights, and scikit-learn's three
estimators. For the logistic loss, too, the weights of least penalized risk lie in the span of the training features:
found in all of feature space from a start outside, they give the function that the kernel alone predicts. The kernel
is that of a random network's last hidden layer, with fewer or with more features than examples, or that of an
infinitely wide network.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, Ridge

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Within,
    agreement,
    assume,
    compiled,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.dynamics import descend
from steepest.kernels import gram
from steepest.nn.data import digits, signs
from steepest.nn.networks import mlp

WAYS = (
    "features: least squares",
    "features: descent with weight decay",
    "Gaussian: elimination",
    "scikit-learn Ridge",
    "scikit-learn KernelRidge",
    "scikit-learn GaussianProcessRegressor",
)

WAY_IDS = (
    "squares",
    "descent",
    "elimination",
    "sklearn_ridge",
    "sklearn_kernel_ridge",
    "sklearn_process",
)


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

    kind = "theorem"
    headline = tuple(f"{way}_{points}" for way in WAY_IDS for points in ("training", "test"))
    statement = (
        r"\Phi\,\mathop{\mathrm{argmin}}_\theta\ \tfrac12\|y-\Phi\theta\|^2+\tfrac\lambda2\|\theta\|^2"
        r"=\mathbb{E}\,[f\mid f(X)+\sqrt\lambda\,\varepsilon=y]=K(K+\lambda)^{-1}y,\quad K=\Phi\Phi^{\mathsf T}"
    )
    source = "Lecture of 31 October in [@hanin2022]; [@rasmussen2006], chapters 2 and 6"
    corrections = (
        "The notes' kernels are strictly positive, ΣΣ a_i a_j K(x_i, x_j) > 0; their second example ⟨x, y⟩ is not, "
        "on more points than dimensions. It has to be ≥ 0, and K(K + λ)⁻¹ needs no more when λ > 0. (Algebra, not "
        "tested here.)",
        "The notes' λ belongs to the sum of the losses. Where the risk is their mean, as elsewhere in the notes, "
        "the same λ gives K(K + mλ)⁻¹y.",
    )
    remarks = (
        "Version 2 adds the logistic loss, since the lecture's theorem is for any loss. With fewer features than "
        "examples the span is everything, so that the part outside it is measured with more; an ℓ1 penalty, for "
        "which the theorem is false, is the control.",
        "Everything here is deterministic up to rounding: intervals are points, and the margin is 1e-10 of the largest "
        "output.",
        "The infinitely wide network has no finite set of features. Its Gram matrix over training and test points is "
        "factored as ΦΦᵀ, which gives features that are exact on these points.",
        "Descent contracts by (κ − 1)/(κ + 1) a step with κ = (λ_max + λ)/λ: enough steps are a hypothesis.",
    )
    tiny = {"train": 10, "test": 5, "few": 6, "many": 20, "ridge": 1.0, "steps": 400}
    full = {"train": 150, "test": 100, "few": 60, "many": 2000, "steps": 20_000}
    out_of_scope = {"ridge": 1e-9}
    version = 2

    def setting(self, key: Key) -> Setting:
        for_data, for_few, for_many = jax.random.split(key, 3)
        data = signs(digits((3, 8), self.train + self.test, for_data))
        pixels = np.asarray(data.x)
        x = pixels - pixels[: self.train].mean(0)
        counts = (self.few, self.many)
        names = [f"{count} features" for count in counts]

        def draw(seeds: tuple[Key, Key]) -> list[jax.Array]:
            nets = [mlp((data.d, count, 1), "relu", c_w=2.0) for count in counts]
            return [net.features(net.init(k), x) for net, k in zip(nets, seeds, strict=True)]

        drawn = zip(compiled(draw)((for_few, for_many)), counts, strict=True)
        features = [np.asarray(phi) / np.sqrt(count) for phi, count in drawn]
        infinite = mlp((data.d, self.many, 1), "relu", parameterized="ntk", c_w=2.0)
        wide = gram(infinite.limit(), x).ntk
        values, vectors = np.linalg.eigh(wide)
        names.append("infinite width")
        features.append(vectors * np.sqrt(np.maximum(values, 0)))
        return Setting(tuple(names), features, np.asarray(data.y))

    def split(self, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the features of the training points, of all points, and λ."""
        inside = phi[: self.train]
        return inside, phi, self.ridge * float((inside**2).sum(1).mean())

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        conditions = []
        for phi in setting.features:
            inside, _, ridge = self.split(phi)
            conditions.append(float(np.linalg.norm(inside, 2) ** 2 / ridge + 1))
        worst = max(conditions)
        left = ((worst - 1) / (worst + 1)) ** self.steps
        fewer = "choose --few below and --many above --train"
        return [
            assume("features of the narrow network", self.few, "<", self.train, fewer),
            assume("features of the wide network", self.many, ">", self.train, fewer),
            assume("λ / mean of K(x, x)", self.ridge, "<=", 100, "a larger one leaves no output"),
            assume(
                "largest condition number of K + λ",
                worst,
                "<=",
                1e4,
                "float64 gives 1e-10 with a larger --ridge",
            ),
            assume(
                "what descent leaves of its start",
                left,
                "<=",
                1e-13,
                "more --steps, or a larger --ridge",
            ),
        ]

    def kernel_ridge(self, setting: Setting, factor: float = 1.0) -> list[np.ndarray]:
        """Return K(x, X)(K + factor · λ)⁻¹y at all points, by the eigenvectors of K."""
        outputs = []
        for phi in setting.features:
            inside, every, ridge = self.split(phi)
            values, vectors = np.linalg.eigh(inside @ inside.T)
            weights = vectors @ (vectors.T @ setting.y[: self.train] / (values + factor * ridge))
            outputs.append(every @ inside.T @ weights)
        return outputs

    def kernel_logistic(self, setting: Setting, factor: float = 1.0) -> list[np.ndarray]:
        """Return K(x, X) α of the least Σ log(1 + exp(−y f)) + factor · λ/2 αᵀKα, from the kernel alone."""
        outputs = []
        for phi in setting.features:
            inside, every, ridge = self.split(phi)
            kernel = inside @ inside.T
            alpha = _kernel_logistic(kernel, setting.y[: self.train], factor * ridge)
            outputs.append(every @ inside.T @ alpha)
        return outputs

    def predict(self, setting: Setting) -> Prediction:
        norms = []
        for phi in setting.features:
            inside, _, ridge = self.split(phi)
            kernel = inside @ inside.T
            a = np.linalg.solve(kernel + ridge * np.eye(self.train), setting.y[: self.train])
            norms.append(a @ kernel @ a)
        return Prediction(
            outputs=("kernel point", self.kernel_ridge(setting)),
            norm=("kernel", norms),
            logistic=("kernel point", self.kernel_logistic(setting)),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        y = setting.y[: self.train]
        outputs = []
        norms = []
        logistic = []
        outside = []
        lasso_outside = []
        rng = numpy_generator(key)
        for phi in setting.features:
            inside, every, ridge = self.split(phi)
            classifier = _logistic(inside, y, ridge, rng.standard_normal(inside.shape[1]))
            logistic.append(every @ classifier)
            if inside.shape[1] > self.train:  # else the training features span everything
                outside.append(_outside(inside, classifier))
                sparse = Lasso(ridge / self.train, fit_intercept=False, max_iter=100_000)
                lasso_outside.append(_outside(inside, sparse.fit(inside, y).coef_))
            weights = _least_squares(inside, y, ridge)
            norms.append(weights @ weights)
            ours = (
                every @ weights,
                every @ self.decayed(inside, y, ridge),
                _eliminate(inside, every, y, ridge),
            )
            outputs.append([*ours, *(fit(inside, every, y, ridge) for fit in _PEERS)])
        return Observation(
            outputs=("kernel way point", outputs),
            norm=("kernel", norms),
            logistic=("kernel point", logistic),
            outside=("wide", outside),
            lasso_outside=("wide", lasso_outside),
        )

    def decayed(self, phi: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
        """Return the weights after descent from zero on the sum of squares with weight decay λ."""
        top = float(np.linalg.norm(phi, 2) ** 2)
        optimizer = optax.chain(optax.add_decayed_weights(ridge), optax.sgd(2 / (top + 2 * ridge)))
        risk = lambda theta: 0.5 * jnp.sum((phi @ theta - y) ** 2)
        start = jnp.zeros(phi.shape[1])
        path = compiled(
            lambda start: descend(risk, start, optimizer, self.steps, record=self.steps)
        )(start)
        return np.asarray(path.params)

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        expected = predicted["outputs"][:, None]
        checks = []
        off = np.abs(observed["outputs"] - expected) / np.abs(observed["outputs"]).max(
            -1, keepdims=True
        )
        for i, way in enumerate(WAYS):
            for name, points in (
                ("training", slice(self.train)),
                ("test", slice(self.train, None)),
            ):
                label = f"{way}: largest relative difference, {name} points"
                checks.append(
                    agreement(f"{WAY_IDS[i]}_{name}", off[:, i, points].max(), 1e-10, label=label)
                )
        norm = np.abs(observed["norm"] / predicted["norm"] - 1).max()
        outputs = observed["logistic"]
        logistic = np.abs(outputs - predicted["logistic"]) / np.abs(outputs).max(-1, keepdims=True)
        return [
            *checks,
            agreement("norm", norm, 1e-10, label="‖θ‖² / ‖f‖²_H − 1"),
            agreement(
                "logistic",
                logistic.max(),
                1e-10,
                label="logistic loss, features against kernel: largest relative difference",
            ),
            agreement(
                "outside",
                observed["outside"].max(),
                1e-10,
                label="logistic loss: share of θ outside the span of the training features",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        wrong = lambda factor: predicted.replace(
            outputs=("kernel point", self.kernel_ridge(setting, factor))
        )
        pinv = [
            self.split(phi)[1] @ np.linalg.pinv(self.split(phi)[0]) @ setting.y[: self.train]
            for phi in setting.features
        ]
        squares = (predicted["outputs"][:, : self.train] ** 2).sum(1)
        flat = predicted.replace(norm=("kernel", squares))
        of_logistic = lambda values: predicted.replace(logistic=("kernel point", values))
        return [
            Rival(
                "logistic_is_ridge",
                of_logistic(predicted["outputs"]),
                "both are in the span",
                label="the logistic loss gives the function of the squared loss",
            ),
            Rival(
                "logistic_half_ridge",
                of_logistic(self.kernel_logistic(setting, 0.5)),
                "½ forgotten on one side",
                label="λ/2 in the penalty, logistic loss",
            ),
            Rival(
                "mean_ridge",
                wrong(self.train),
                "the risk is a mean elsewhere in the notes",
                label="λ of the mean: K(K + mλ)⁻¹y",
            ),
            Rival(
                "half_ridge",
                wrong(0.5),
                "½ forgotten on one side",
                label="λ/2 in the penalty: K(K + λ/2)⁻¹y",
            ),
            Rival(
                "no_ridge",
                predicted.replace(outputs=("kernel point", pinv)),
                "the limit λ → 0",
                label="no λ: interpolation",
            ),
            Rival(
                "norm_of_squares",
                flat,
                "the norm of L² for that of the RKHS",
                label="‖f‖²_H is the sum of squares of f",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        return [
            Control(
                "lasso",
                observed.replace(outside=observed.quantity("lasso_outside")),
                "what the penalty adds outside the span is not lost",
                label="an ℓ1 penalty",
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        points = np.arange(self.test)
        outputs = observed["outputs"][:, :, self.train :]
        expected = predicted["outputs"][:, self.train :]
        off = np.abs(observed["outputs"] - predicted["outputs"][:, None]).max(-1)
        ways = np.arange(1, len(WAYS) + 1)
        named = [f"{self.few} features", f"{self.many} features", "infinite width"]
        return (
            panel(
                "Test points, infinite width",
                "test point",
                "output",
                predicted_curve(points, expected[-1], "K(K + λ)⁻¹y"),
                *(
                    observed_curve(points, outputs[-1, i], WAYS[i], kind="points", shade=i / 2)
                    for i in range(3)
                ),
            ),
            panel(
                "All ways agree to rounding",
                "way, in the order of the table",
                "largest difference",
                *(
                    observed_curve(
                        ways, np.maximum(off[i], 1e-17), named[i], kind="points", shade=i / 2
                    )
                    for i in range(3)
                ),
                rival_curve(ways, 0 * ways + 1e-10, "margin"),
                log="y",
            ),
        )


def _least_squares(phi: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Return the weights of ridge regression as ordinary least squares with N more rows, [Φ; √λ I] θ ≈ [y; 0]."""
    rows = np.concatenate([phi, np.sqrt(ridge) * np.eye(phi.shape[1])])
    return np.linalg.lstsq(rows, np.concatenate([y, np.zeros(phi.shape[1])]))[0]


def _kernel_logistic(kernel: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Return the α of f = Kα with λα = y s(−y f), s the logistic function, by Newton's steps on the n unknowns."""
    objective = lambda a: np.logaddexp(0, -y * (kernel @ a)).sum() + ridge / 2 * a @ kernel @ a

    def step(a: np.ndarray) -> np.ndarray:
        share = expit(-y * (kernel @ a))
        curvature = ridge * np.eye(len(y)) + (share * (1 - share))[:, None] * kernel
        return np.linalg.solve(curvature, y * share - ridge * a)

    return _newton(objective, step, np.zeros(len(y)))


def _logistic(phi: np.ndarray, y: np.ndarray, ridge: float, start: np.ndarray) -> np.ndarray:
    """Return the θ of least Σ log(1 + exp(−y Φθ)) + λ/2 ‖θ‖², by Newton's steps in all of feature space."""
    objective = lambda theta: np.logaddexp(0, -y * (phi @ theta)).sum() + ridge / 2 * theta @ theta

    def step(theta: np.ndarray) -> np.ndarray:
        share = expit(-y * (phi @ theta))
        curvature = (phi * (share * (1 - share))[:, None]).T @ phi + ridge * np.eye(len(theta))
        return np.linalg.solve(curvature, phi.T @ (y * share) - ridge * theta)

    return _newton(objective, step, start)


def _newton(objective: Callable, step: Callable, start: np.ndarray) -> np.ndarray:
    """Take Newton's steps, each halved until the convex objective does not rise; forty are far more than enough."""
    point = start
    for _ in range(40):
        move = step(point)
        # near the minimum the objective is flat to rounding, and the whole step is the best one
        while objective(point + move) > objective(point) + 1e-9:
            move = move / 2
        point = point + move
    return point


def _outside(phi: np.ndarray, theta: np.ndarray) -> float:
    """Return ‖Π⊥θ‖/‖θ‖, with Π⊥ the projection away from the span of the rows of Φ."""
    basis = np.linalg.qr(phi.T)[0]
    return float(np.linalg.norm(theta - basis @ (basis.T @ theta)) / np.linalg.norm(theta))


def _eliminate(inside: np.ndarray, every: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Return E[f | y], by eliminating the block of y from the joint covariance of (y, f), a column at a time."""
    m = len(inside)
    joint = np.concatenate([inside, every]) @ np.concatenate([inside, every]).T
    joint[:m, :m] += ridge * np.eye(m)
    mean = np.concatenate([y, np.zeros(len(every))])  # innovations of y first, then −E[f | y]
    for k in range(m):
        gain = joint[k + 1 :, k] / joint[k, k]
        joint[k + 1 :, k + 1 :] -= np.outer(gain, joint[k, k + 1 :])
        mean[k + 1 :] -= gain * mean[k]
    return -mean[m:]


def _fitted(peer: Any, **choices: Any) -> Callable:
    """Return the outputs at all points of one of scikit-learn's estimators."""
    return lambda inside, every, y, ridge: (
        peer(alpha=ridge, **choices).fit(inside, y).predict(every)
    )


_PEERS = (
    _fitted(Ridge, fit_intercept=False, solver="svd"),
    _fitted(KernelRidge, kernel="linear"),
    _fitted(
        GaussianProcessRegressor,
        kernel=DotProduct(sigma_0=0.0, sigma_0_bounds="fixed"),
        optimizer=None,
    ),
)
