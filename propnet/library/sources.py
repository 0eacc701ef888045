"""References to theses that describe several games of the library."""

RICHARDS = "M. D. Richards, Reasoning and Decisions in Partially Observable Games, University of Illinois 2012"
SCHLINDENBUCH = "H. Schlindenbuch, General Game Playing and Deepstack, Charles University 2019"
SHAFIEI_KHADEM = "M. Shafiei Khadem, Simultaneous Move Games in General Game Playing, University of Alberta 2010"
WEST = (
    "J. West, Optimising Deep Learning and Search for Imperfect-Information Games in General Game Playing, "
    "University of New South Wales 2024"
)
