"""CIFAR-10: 60,000 colour photographs of 32 x 32 pixels in ten classes; 50,000 for training, 10,000 for testing.

They are read from the official archive of pickled batches or from image files (:mod:`pipeline.raw_data.cifar`).
Partition: the class.

Source: Krizhevsky (2009).
"""

from fairness_audits.values import Generators, ImageDataset, Provenance
from pipeline.raw_data import cifar, image_sets
from pipeline.raw_data.image_sets import Labelled

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FOLDER = "cifar-10-batches-py"
PUBLISHED = cifar.Published(
    archive="cifar-10-python.tar.gz",
    batches={
        "train": tuple(f"{FOLDER}/data_batch_{number}" for number in range(1, 6)),
        "test": (f"{FOLDER}/test_batch",),
    },
    labels="labels",
    classes=CLASSES,
    images={"train": 5_000, "test": 1_000},
    digests={
        "train": "59dce1f12b19a5c7e7f42d6729b7de745fc35a5c0bd738ea209c356f465435d3",
        "test": "ee8e068f911e3d3c869a8a18ba71e228539a70e427a0c261fe5c12854b48e456",
    },
)
SOURCES = (PUBLISHED.source("6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce", 170_498_071),)
recognised, parse = PUBLISHED.recognised, PUBLISHED.parse
Config = image_sets.ImageConfig


def prepare(rows: Labelled, config: Config, rngs: Generators, origin: Provenance) -> ImageDataset:
    """Return the published split, or a subset of it stratified by class."""
    return image_sets.assembled("cifar10", origin, rows, rows.published_split(), config, rngs[0])
