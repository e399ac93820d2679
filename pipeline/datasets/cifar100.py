"""CIFAR-100: 60,000 colour photographs of 32 x 32 pixels; 50,000 for training, 10,000 for testing.

Each image has one of 100 classes and one of 20 superclasses. ``rows`` selects which of the two is the label and the
partition. Images are read from the official archive of pickled batches or from image files
(:mod:`pipeline.raw_data.cifar`). No digest of the official training images is recorded, so image files always count as
a ``re-encoded`` copy.

Source: Krizhevsky (2009).
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from fairness_audits.validation import one_of
from fairness_audits.values import Generators, ImageDataset, Provenance
from pipeline.raw_data import cifar, image_sets
from pipeline.raw_data.image_sets import Labelled

SUPERCLASSES = {
    name: tuple(classes.split())
    for name, classes in {
        "aquatic_mammals": "beaver dolphin otter seal whale",
        "fish": "aquarium_fish flatfish ray shark trout",
        "flowers": "orchid poppy rose sunflower tulip",
        "food_containers": "bottle bowl can cup plate",
        "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
        "household_electrical_devices": "clock keyboard lamp telephone television",
        "household_furniture": "bed chair couch table wardrobe",
        "insects": "bee beetle butterfly caterpillar cockroach",
        "large_carnivores": "bear leopard lion tiger wolf",
        "large_man-made_outdoor_things": "bridge castle house road skyscraper",
        "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
        "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
        "medium_mammals": "fox porcupine possum raccoon skunk",
        "non-insect_invertebrates": "crab lobster snail spider worm",
        "people": "baby boy girl man woman",
        "reptiles": "crocodile dinosaur lizard snake turtle",
        "small_mammals": "hamster mouse rabbit shrew squirrel",
        "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
        "vehicles_1": "bicycle bus motorcycle pickup_truck train",
        "vehicles_2": "lawn_mower rocket streetcar tank tractor",
    }.items()
}
"""The classes of each superclass, in the order of the superclasses' numbers."""
CLASSES = tuple(sorted(name for classes in SUPERCLASSES.values() for name in classes))
KINDS = ("fine", "coarse")

FOLDER = "cifar-100-python"
PUBLISHED = cifar.Published(
    archive="cifar-100-python.tar.gz",
    batches={split: (f"{FOLDER}/{split}",) for split in cifar.SPLITS},
    labels="fine_labels",
    classes=CLASSES,
    images={"train": 500, "test": 100},
    digests={"train": None, "test": "9104808b3df435c6bca9935197659573c73f8b34b6b4641157858dbed6e64fc4"},
)
SOURCES = (PUBLISHED.source("85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7", 169_001_437),)
recognised, parse = PUBLISHED.recognised, PUBLISHED.parse


@dataclass(frozen=True)
class Config(image_sets.ImageConfig):
    """``rows``: the labels, ``fine`` (100 classes) or ``coarse`` (20 superclasses)."""

    rows: Annotated[str, one_of(KINDS)]


def prepare(rows: Labelled, config: Config, rngs: Generators, origin: Provenance) -> ImageDataset:
    """Return the published split, or a subset of it stratified by the chosen label."""
    if config.rows == "coarse":
        above = {name: code for code, names in enumerate(SUPERCLASSES.values()) for name in names}
        coarse = np.array([above[name] for name in CLASSES])
        rows = replace(rows, label=coarse[rows.label], label_name="superclass", classes=tuple(SUPERCLASSES))
    return image_sets.assembled("cifar100", origin, rows, rows.published_split(), config, rngs[0])
