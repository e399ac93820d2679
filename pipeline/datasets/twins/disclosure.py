"""What may be stored about the people behind the official data: nothing that counts too few of them.

No row is stored, and

- counts of the root table are rounded to multiples of :data:`FEWEST`, so a cell of fewer than half of that vanishes;
- a category of fewer than :data:`FEWEST` rows is merged into the commonest one;
- an interval, and a number that stands for itself, holds at least :data:`FEWEST_IN_INTERVAL` rows; the outermost limits
  are the tenth smallest and the tenth largest value;
- the summary of what is preserved leaves out groups of fewer than :data:`FEWEST_IN_GROUP` rows and, within a group,
  categories of fewer than :data:`FEWEST`;
- weights and shares are rounded to hundredths, means and standard deviations to three digits;
- in a copula, a group and, within a block, a value of the second attribute have at least :data:`FEWEST_IN_INTERVAL`
  rows, and so has every interval of a quantile function; correlations are rounded to hundredths.

The counts of the Strategic Subject List are stored as its city's data were counted in public, small ones too.

The weights follow two-way counts closely, small ones too, so a rare combination of two attributes is about as frequent
in the twin as in the data. The official files are public; the rule is good manners, not a formal guarantee such as
differential privacy.
"""

FEWEST = 10
FEWEST_IN_INTERVAL = 50
FEWEST_IN_GROUP = 100
