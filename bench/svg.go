package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"strings"
)

// chart is lines over named places, with a bound.
type chart struct {
	title  string
	yTitle string
	places []string // along the bottom
	lines  []curve
	limit  float64
	says   string // of the limit
}

// curve is one line, with a value for each place.
type curve struct {
	name, colour string
	values       []float64
}

// The picture, in pixels.
const (
	chartWidth, chartHeight   = 760, 420
	plotLeft, plotRight       = 70, 720
	plotTop, plotBottom       = 70, 340
	chartInk, chartPale       = "#1f2933", "#d9dee3"
	colourCreate, colourClaim = "#0b6bcb", "#b35c00"
	colourLimit               = "#b3261e"
)

// top is the end of the vertical axis: the next quarter above everything.
func (c chart) top() float64 {
	top := c.limit
	for _, l := range c.lines {
		for _, v := range l.values {
			top = max(top, v)
		}
	}
	return math.Ceil(top*1.1*4) / 4
}

func (c chart) x(i int) float64 {
	if len(c.places) < 2 {
		return (plotLeft + plotRight) / 2
	}
	const margin = 50
	return plotLeft + margin + float64(i)*(plotRight-plotLeft-2*margin)/float64(len(c.places)-1)
}

func (c chart) y(v float64) float64 { return plotBottom - v/c.top()*(plotBottom-plotTop) }

// svg draws the chart. It has no script and refers to nothing outside.
func (c chart) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s" font-family="system-ui, sans-serif" font-size="13" fill="%s">`+"\n",
		chartWidth, chartHeight, chartWidth, chartHeight, html.EscapeString(c.title), chartInk)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, chartHeight)
	text(&b, plotLeft, 28, "start", 16, chartInk, c.title)
	text(&b, plotLeft, 50, "start", 13, chartInk, c.yTitle)
	c.drawAxes(&b)
	line := c.y(c.limit)
	fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-dasharray="6 4"/>`+"\n", plotLeft, line, plotRight, line, colourLimit)
	text(&b, plotRight, line-6, "end", 13, colourLimit, c.says)
	for i, l := range c.lines {
		c.drawCurve(&b, l)
		c.drawKey(&b, l, plotLeft+i*160)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c chart) drawAxes(b *strings.Builder) {
	for v := 0.0; v <= c.top()+0.001; v += 0.25 {
		y := c.y(v)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s"/>`+"\n", plotLeft, y, plotRight, y, chartPale)
		text(b, plotLeft-8, y+4, "end", 12, chartInk, fmt.Sprintf("%.2f", v))
	}
	for i, place := range c.places {
		for n, part := range strings.Split(place, ", ") {
			text(b, c.x(i), float64(plotBottom+22+n*17), "middle", 13, chartInk, part)
		}
	}
}

func (c chart) drawCurve(b *strings.Builder, l curve) {
	points := make([]string, len(l.values))
	for i, v := range l.values {
		points[i] = fmt.Sprintf("%.1f,%.1f", c.x(i), c.y(v))
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2.5"/>`+"\n", strings.Join(points, " "), l.colour)
	for i, v := range l.values {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"><title>%s, %s: %.2f</title></circle>`+"\n",
			c.x(i), c.y(v), l.colour, html.EscapeString(l.name), html.EscapeString(c.places[i]), v)
	}
}

func (c chart) drawKey(b *strings.Builder, l curve, x int) {
	const y = chartHeight - 18
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2.5"/>`+"\n", x, y-4, x+26, y-4, l.colour)
	text(b, float64(x+34), y, "start", 13, chartInk, l.name)
}

func text(b *strings.Builder, x, y float64, anchor string, size int, colour, says string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="%s">%s</text>`+"\n", x, y, anchor, size, colour, html.EscapeString(says))
}

// drawGrowth writes the two curves of the growth contest.
func drawGrowth(path string, rows []row) error {
	create, claim := curve{name: "create", colour: colourCreate}, curve{name: "claim", colour: colourClaim}
	c := chart{title: "What a grown store costs", yTitle: "CPU of a job beside that in an empty store", limit: 1.2, says: "goal: at most 1.2"}
	for _, r := range rows {
		c.places = append(c.places, r.Name)
		create.values = append(create.values, r.Figures[createRatio])
		claim.values = append(claim.values, r.Figures[claimRatio])
	}
	c.lines = []curve{create, claim}
	return os.WriteFile(path, []byte(c.svg()), 0o644)
}
