package model

// SeriesCount is one more than the largest Series.
const SeriesCount = int(seriesCount)
