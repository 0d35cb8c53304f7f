"""
Phase portrait at zero temperature
==================================

Where a single token goes when it attends to the best match only. Lines are exact orbits of the projected linear flow
on the sphere; they leave the repeller, pass the saddle of the middle eigenvector, and end at the two triangles. The
drift is not normal, so the three axes are not perpendicular.
"""

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf
from mfpde.figures.sphere import globe
from mfpde.methods.zero_temperature import flow

I = np.eye(3)
attention = mf.Attention(I, I, [[1.0, 0.5, 0.3], [0.0, 0.4, 0.3], [0.0, 0.0, -0.4]], beta=np.inf)
print(mf.limits.spectrum(attention).explain)
starts = mf.Sphere().mesh(162).centres
orbits = np.stack([flow(attention, starts, t) for t in np.linspace(-8, 8, 161)])  # backwards in time, too
eigenvalues, axes_of_flow = np.linalg.eig(attention.drift)

figure = Figure(figsize=(8.5, 4.3), layout="constrained")
for panel, facing in zip(figure.subplots(1, 2), ([0.75, -0.5, 0.45], [-0.75, 0.5, -0.45]), strict=True):
    view = globe(np.array(facing))
    for orbit in orbits.transpose(1, 0, 2):
        panel.plot(*view.place(orbit).T, color="tab:blue", linewidth=0.5, alpha=0.7)
    panel.plot(*view.outline.T, color="grey", linewidth=0.8)
    for value, axis, marker in zip(eigenvalues, axes_of_flow.T, "^so", strict=True):
        place = view.place(np.stack([axis, -axis]))
        panel.plot(*place.T, marker, color="tab:orange", markersize=8, label=f"eigenvector of {value:.2g}")
    panel.set_aspect("equal")
    panel.set_axis_off()
figure.axes[0].set_title("from the front")
figure.axes[1].set_title("from behind")
figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
