"""ro-crate-metadata.json: the files of a model folder as an RO-Crate, for archives."""

import json
from collections.abc import Iterable
from typing import Any

from fedlasso.models.about import About, date_of_today, versions
from fedlasso.models.document import ModelDocument

CRATE = "ro-crate-metadata.json"
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
SOFTWARE = "#fedlasso"
# What each file holds, and its media type by ending.
CONTENTS = {
    "card.html": "The model on one page",
    "model.json": "Everything about the model",
    "coefficients.csv": "Coefficients, estimates and intervals of every column",
    "curve.csv": "Held-out error by penalty",
    "path.csv": "Coefficients by penalty",
    "assessment.csv": "Predictive performance with 95% intervals",
    "roc.csv": "Points of the ROC curve",
    "calibration.csv": "Points of the calibration plot",
    "survival.csv": "Points of the Kaplan-Meier curves",
    "site_errors.csv": "Error of the model on each site's rows",
    "comparison.csv": "Comparison with each site's own fit and their average",
    "site_estimates.csv": "Estimates from each site's rows alone",
    "costs.csv": "Messages and bytes of each site",
    "table1.csv": "Table 1: the columns by site",
    "plan.json": "Options of the fit, and where the sites are",
    "audit.json": "The comparison with the sites' audits",
}
MEDIA = {"csv": "text/csv", "html": "text/html", "json": "application/json"}
# The records are not in the folder, so neither is their licence.
LICENCE = "Not stated here; the holders of the records decide."


def describe_crate(names: Iterable[str], document: ModelDocument, about: About) -> bytes:
    """Return the metadata of a folder with these files."""
    files = sorted(set(names))
    data = [
        {"@id": f"#data-{k}", "@type": "CreativeWork", "name": name, "sha256": digest}
        for k, (name, digest) in enumerate(sorted(about.data.items()))
    ]
    graph: list[dict[str, Any]] = [
        {
            "@id": CRATE,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": SPECIFICATION},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": about.title or document.title,
            "description": f"{document.name} of {document.schema.target}, fitted across "
            f"{len(document.sites)} site(s) without pooling their records",
            "datePublished": date_of_today(),
            "license": LICENCE,
            "hasPart": _links(files),
            "mentions": {"@id": "#fit"},
        },
        {
            "@id": "#fit",
            "@type": "CreateAction",
            "name": "fedlasso fit",
            "instrument": {"@id": SOFTWARE},
            "object": _links(own["@id"] for own in data),
            "result": _links(files),
        },
        {
            "@id": SOFTWARE,
            "@type": "SoftwareApplication",
            "name": "fedlasso",
            "softwareVersion": versions()["fedlasso"],
        },
        *(_file(name) for name in files),
        *data,
    ]
    if about.author:
        graph[1]["author"] = {"@id": "#author"}
        graph.append({"@id": "#author", "@type": "Person", "name": about.author})
    metadata = {"@context": f"{SPECIFICATION}/context", "@graph": graph}
    return json.dumps(metadata, indent=1, ensure_ascii=False).encode()


def _links(names: Iterable[str]) -> list[dict[str, str]]:
    return [{"@id": name} for name in names]


def _file(name: str) -> dict[str, str]:
    kind = MEDIA.get(name.rpartition(".")[2], "application/octet-stream")
    about = CONTENTS.get(name, name)
    return {
        "@id": name,
        "@type": "File",
        "name": name,
        "description": about,
        "encodingFormat": kind,
    }
