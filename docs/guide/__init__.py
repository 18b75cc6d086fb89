"""The guide: what its pages say, and what makes a site of them."""
