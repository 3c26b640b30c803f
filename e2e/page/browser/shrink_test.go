package browser

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShrink(t *testing.T) {
	picture := image.NewRGBA(image.Rect(0, 0, 200, 100))
	for y := range 100 {
		for x := range 200 {
			picture.SetRGBA(x, y, color.RGBA{0xf4, 0xf6, 0xf8, 255})
			if y > 50 {
				// More colors than a palette has.
				picture.SetRGBA(x, y, color.RGBA{uint8(x), uint8(x), uint8(x + 8*(y%4)), 255})
			}
		}
	}
	var before bytes.Buffer
	require.NoError(t, png.Encode(&before, picture))
	after, err := Shrink(before.Bytes())
	require.NoError(t, err)

	small, err := png.Decode(bytes.NewReader(after))
	require.NoError(t, err)
	assert.Equal(t, picture.Bounds(), small.Bounds())
	assert.IsType(t, &image.Paletted{}, small, "a byte a pixel")
	assert.Equal(t, color.RGBA{0xf4, 0xf6, 0xf8, 255}, small.At(3, 3), "a frequent color stays exactly")
	largest := 0
	for y := range 100 {
		for x := range 200 {
			was, is := picture.RGBAAt(x, y), small.At(x, y).(color.RGBA)
			for _, difference := range []int{int(was.R) - int(is.R), int(was.G) - int(is.G), int(was.B) - int(is.B)} {
				largest = max(largest, difference, -difference)
			}
		}
	}
	assert.LessOrEqual(t, largest, 25)
	_, err = Shrink([]byte("no picture"))
	assert.Error(t, err)
}
