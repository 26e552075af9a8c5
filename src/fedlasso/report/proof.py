r"""The proof of the correlated proposition, step by step, for LaTeX and for HTML.

Text with ``$...$`` in a line and ``$$...$$`` on its own line. ``tests/report/test_proof.py`` checks
the algebra of every step with exact symbols.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from latex2mathml.converter import convert


@dataclass(frozen=True)
class Step:
    """One step: what it claims, and why."""

    title: str
    text: str


CLAIM = Step(
    "Claim",
    r"""
Two sites of equal weight hold two predictors. Their scaled Gram matrices are $H_1=I_2$ and
$H_2=\begin{pmatrix}1&r\\r&1\end{pmatrix}$ with $0<r<1$. For $a,d,\lambda>0$ put
$\theta_1=(a,a)^\top$, $\theta_2=(a,a+d)^\top$ and let the scores be
$z_j=H_j\theta_j+\lambda(1,1)^\top$. Sweeps update coordinate 1, then coordinate 2. Averaging with
$E$ epochs a round, started at zero, converges to
$$b_E=\left(a+\frac{r^{2E-1}d}{2(2-r^{2E})},\;a+\frac{(1-r^{2E})d}{2-r^{2E}}\right)^\top,$$
the error of its second coordinate shrinking by the factor $r^{2E}/2$ in each round. The pooled
solution is $b_\star=\left(a+\frac{rd}{4-r^2},\;a+\frac{(2-r^2)d}{4-r^2}\right)^\top$, and with
$t_E=r^{2E}/(2-r^{2E})$
$$F(b_E)-F(b_\star)=\frac{d^2r^4}{32(4-r^2)}+\frac{d^2}{8r^2}\left(t_E-\frac{r^2}{2}\right)^2.$$
Every coefficient after a local update, and every server coefficient but the first, is positive.
""",
)

STEPS = (
    Step(
        "Site 1 forgets where it started",
        r"""
With $H_1=I_2$ a coordinate update does not see the other coefficient: it returns
$z_{1k}-\lambda=a$, and no thresholding happens since $a>0$. So whatever comes in, and however many
sweeps are made, site 1 sends back $(a,a)^\top$.
""",
    ),
    Step(
        "One sweep at site 2",
        r"""
The scores of site 2 are $z_{21}=a+r(a+d)+\lambda$ and $z_{22}=ra+a+d+\lambda$. Let the incoming
second coefficient be $u$ with $0\leq u\leq a+d$; the incoming first one is overwritten at once and
plays no part. The update of coordinate 1 thresholds $z_{21}-ru=\lambda+a+r(a+d-u)$. This exceeds
$\lambda$ by at least $a$, so
$$v=a+r(a+d-u)\geq a>0.$$
The update of coordinate 2 thresholds $z_{22}-rv=\lambda+(a+d)-r^2(a+d-u)$, which exceeds $\lambda$
since $r^2<1$ and $a+d-u\leq a+d$. Hence
$$u'=(a+d)-r^2(a+d-u)=(1-r^2)(a+d)+r^2u>0.$$
The last form is a weighted mean of $a+d$ and $u$. So $u'$ is again between $0$ and $a+d$, and the
same step may be repeated.
""",
    ),
    Step(
        "All sweeps of a round",
        r"""
Measure the second coefficient by its distance $e=a+d-u$ below $a+d$. A sweep turns $e$ into
$r^2e$. After $E$ sweeps the distance is $r^{2E}e$. The first coefficient is set in the last sweep,
from the distance $r^{2(E-1)}e$ that the sweep before left. Site 2 therefore returns
$$\left(a+r^{2E-1}e,\;a+d-r^{2E}e\right)^\top.$$
""",
    ),
    Step(
        "The server's average",
        r"""
Write $s=r^{2E}$. If the server's second coefficient is $u$ before a round, it is
$$u^+=\frac{1}{2}a+\frac{1}{2}\left(a+d-s(a+d-u)\right)$$
after it: the mean of two numbers that both lie in $[0,a+d]$ and are positive. The start $u=0$ lies
there too, so the steps above hold in every round. The map has slope $s/2<1$, so the distance to
its only fixed point shrinks by $s/2=r^{2E}/2$ in each round. The fixed point solves
$u(1-s/2)=a(1-s/2)+d(1-s)/2$, which gives
$$u_\infty=a+\frac{(1-s)d}{2-s},\qquad a+d-u_\infty=\frac{d}{2-s}.$$
The first coefficient is $\frac{1}{2}a+\frac{1}{2}(a+r^{2E-1}(a+d-u))\geq a$ after every round and
tends to $a+\frac{r^{2E-1}d}{2(2-s)}$. This is $b_E$.
""",
    ),
    Step(
        "The pooled solution",
        r"""
Let $H=\frac{1}{2}(H_1+H_2)=\begin{pmatrix}1&r/2\\r/2&1\end{pmatrix}$, which is positive definite,
and $\mathbf{1}=(1,1)^\top$. Where both coefficients are positive the gradient of $F$ is
$Hb-\frac{1}{2}(z_1+z_2)+\lambda\mathbf{1}$. Since $\theta_1=a\mathbf{1}$ and
$\theta_2=a\mathbf{1}+d(0,1)^\top$, it vanishes exactly when
$$H(b-a\mathbf{1})=\frac{d}{2}\begin{pmatrix}r\\1\end{pmatrix}.$$
The determinant of $H$ is $(4-r^2)/4$, and solving gives $b_\star$. Both its coefficients are
positive, so the optimality conditions of the Lasso hold there; $F$ is strictly convex, so there is
no other minimiser.
""",
    ),
    Step(
        "The objective gap",
        r"""
Both points lie where $F$ is quadratic with Hessian $H$, and the gradient vanishes at $b_\star$, so
$$F(b_E)-F(b_\star)=\frac{1}{2}(b_E-b_\star)^\top H(b_E-b_\star).$$
With $t=s/(2-s)$ the limit reads $b_E-a\mathbf{1}=\frac{d}{2}\left(\frac{t}{r},\;1-t\right)^\top$:
as $E$ varies it moves along a line. The gap is therefore a quadratic in $t$. Its second-order
coefficient is $\frac{d^2}{8}\left(\frac{1}{r^2}-1+1\right)=\frac{d^2}{8r^2}$, its derivative
vanishes at $t=r^2/2$, and its value there is $\frac{d^2r^4}{32(4-r^2)}$. This is the stated
formula.
""",
    ),
    Step(
        "The best epoch count",
        r"""
Treat $E$ as real. As $E$ grows, $s=r^{2E}$ falls, and so does $t_E$. The square vanishes at
$t_E=r^2/2$ only, that is at
$$r^{2E}=\frac{r^2}{1+r^2/2},\qquad E_\star(r)=1+\frac{\log(1+r^2/2)}{-\log(r^2)}.$$
In the fraction the numerator is positive and rises with $r$ while the denominator is positive and
falls, so $E_\star$ exceeds 1 and rises with $r$. The gap falls before $E_\star$ and rises after
it: the best whole number is one of its two neighbours.
""",
    ),
)


def proof_latex() -> str:
    """The proof as LaTeX."""
    parts = [rf"\paragraph{{{step.title}.}}{_displays(step.text)}" for step in (CLAIM, *STEPS)]
    return "\n".join([*parts, r"\hfill$\square$", ""])


def _displays(text: str) -> str:
    return re.sub(r"\$\$(.+?)\$\$", r"\\[\1\\]", text, flags=re.DOTALL)


def proof_html() -> str:
    """The proof as HTML with MathML, which browsers draw without any script."""
    return "".join(
        f"<h3>{html.escape(s.title, quote=False)}</h3>{_to_html(s.text)}" for s in (CLAIM, *STEPS)
    )


def _to_html(text: str) -> str:
    pieces = re.split(r"(\$\$.+?\$\$|\$.+?\$)", text.strip(), flags=re.DOTALL)
    out = ["<p>"]
    for piece in pieces:
        if piece.startswith("$$"):
            out.append("</p>" + convert(piece[2:-2], display="block") + "<p>")
        elif piece.startswith("$"):
            out.append(convert(piece[1:-1]))
        else:
            out.append(html.escape(piece, quote=False))
    return "".join([*out, "</p>"])
