"""Pictures of pages: figures with few colours, at a third of the size."""

from io import BytesIO

COLOURS = 256
"""Number of colours: lines, labels and heat maps look the same."""


def few_colours(png: bytes) -> bytes:
    """Return the PNG with few colours.

    Maximum coverage bounds the error of every colour. Median cut bounds the mean error, so it mixes the rare dark ends
    of a colour scale.
    """
    from PIL import Image

    smaller = BytesIO()
    with Image.open(BytesIO(png)) as image:
        few = image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(smaller, "PNG", optimize=True)
    return smaller.getvalue()
