package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"slices"
)

// Shrink returns a PNG with the 256 most frequent colors in a third of the bytes:
// a page has few colors, but the edges of its letters have hundreds.
func Shrink(content []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	bounds := from.Bounds()
	counts := map[color.RGBA]int{}
	pixels := make([]color.RGBA, 0, bounds.Dx()*bounds.Dy())
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)
			counts[c]++
			pixels = append(pixels, c)
		}
	}
	palette, index := paletteOf(counts)
	to := image.NewPaletted(bounds, palette)
	for i, c := range pixels {
		at, ok := index[c]
		if !ok {
			at = uint8(palette.Index(c))
			index[c] = at
		}
		to.Pix[i] = at
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to)
	return out.Bytes(), err
}

// paletteOf returns the 256 most frequent colors and their indexes.
func paletteOf(counts map[color.RGBA]int) (color.Palette, map[color.RGBA]uint8) {
	colors := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		colors = append(colors, c)
	}
	slices.SortFunc(colors, func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	colors = colors[:min(len(colors), 256)]
	palette := make(color.Palette, len(colors))
	index := make(map[color.RGBA]uint8, len(colors))
	for i, c := range colors {
		palette[i] = c
		index[c] = uint8(i)
	}
	return palette, index
}
