// The panels of Grafana are no package, but what they draw with is. Each panel here
// does as little as it takes to hand it the data.
import { useMemo } from "react";
import {
	DataFrame,
	FieldType,
	PanelPlugin,
	PanelProps,
	cacheFieldDisplayNames,
	formattedValueToString,
	getDisplayValueAlignmentFactors,
	getFieldDisplayName,
	getFieldDisplayValues,
	renderTextPanelMarkdown,
} from "@grafana/data";
import { BarGauge, BigValue, TimeSeries, VizLegend, VizRepeater, useTheme2 } from "@grafana/ui";
import { TableNG } from "@grafana/ui/unstable";

const hasData = (frames: DataFrame[]) => frames.some((frame) => frame.length > 0 && frame.fields.some((field) => field.type === FieldType.number));

function Nothing({ fieldConfig }: Pick<PanelProps, "fieldConfig">) {
	return <div style={{ display: "grid", placeContent: "center", height: "100%" }} data-nothing>{fieldConfig.defaults.noValue ?? "No data"}</div>;
}

// A line has a gap where a value is no number.
const gaps = (frame: DataFrame): DataFrame => ({
	...frame,
	fields: frame.fields.map((field) => (field.type === FieldType.number ? { ...field, values: field.values.map((value) => (Number.isFinite(value) ? value : null)) } : field)),
});

function Graph({ data, options, width, height, timeRange, timeZone, fieldConfig }: PanelProps<any>) {
	const frames = useMemo(() => data.series.map(gaps), [data.series]);
	if (!hasData(data.series)) {
		return <Nothing fieldConfig={fieldConfig} />;
	}
	return <TimeSeries frames={frames} structureRev={data.structureRev} timeRange={timeRange} timeZone={timeZone} width={width} height={height} legend={options.legend} options={options} />;
}

function displayValues({ data, options, fieldConfig, replaceVariables, timeZone }: PanelProps<any>, theme: any, sparkline: boolean) {
	return getFieldDisplayValues({ data: data.series, reduceOptions: options.reduceOptions, fieldConfig, replaceVariables, theme, timeZone, sparkline });
}

function Stat(props: PanelProps<any>) {
	const theme = useTheme2();
	const { options, width, height, renderCounter, data } = props;
	return (
		<VizRepeater
			getValues={() => displayValues(props, theme, options.graphMode !== "none")}
			getAlignmentFactors={getDisplayValueAlignmentFactors}
			renderValue={({ value, width, height, alignmentFactors, count }) => (
				<BigValue
					value={value.display} sparkline={value.sparkline} count={count} width={width} height={height} theme={theme} alignmentFactors={alignmentFactors}
					colorMode={options.colorMode} graphMode={options.graphMode} justifyMode={options.justifyMode} textMode={options.textMode}
					percentChangeColorMode={options.percentChangeColorMode} disableWideLayout={!options.wideLayout} text={options.text}
				/>
			)}
			source={data} renderCounter={renderCounter} width={width} height={height} orientation={options.orientation} autoGrid
		/>
	);
}

function Bars(props: PanelProps<any>) {
	const theme = useTheme2();
	const { options, width, height, renderCounter, data, fieldConfig } = props;
	if (!hasData(data.series)) {
		return <Nothing fieldConfig={fieldConfig} />;
	}
	const manual = options.sizing === "manual";
	return (
		<VizRepeater
			getValues={() => displayValues(props, theme, false)}
			getAlignmentFactors={getDisplayValueAlignmentFactors}
			renderValue={({ value, width, height, orientation, alignmentFactors, count }) => (
				<BarGauge
					value={value.display} field={value.field} display={value.view?.getFieldDisplayProcessor(value.colIndex!)} width={width} height={height} theme={theme}
					orientation={orientation} alignmentFactors={count > 1 ? alignmentFactors : undefined} itemSpacing={8} lcdCellWidth={12} isOverflow={false}
					displayMode={options.displayMode} showUnfilled={options.showUnfilled} valueDisplayMode={options.valueMode} namePlacement={options.namePlacement} text={options.text}
				/>
			)}
			source={data} renderCounter={renderCounter} width={width} height={height} orientation={options.orientation} itemSpacing={8}
			minVizHeight={manual ? options.minVizHeight : 0} maxVizHeight={manual ? options.maxVizHeight : 300}
		/>
	);
}

function Table({ data, options, width, height, timeRange, fieldConfig }: PanelProps<any>) {
	cacheFieldDisplayNames(data.series);
	const frame = data.series[options.frameIndex ?? 0];
	if (!frame || frame.length === 0) {
		return <Nothing fieldConfig={fieldConfig} />;
	}
	// All columns in the page, of a wide table too, so that a test can read them.
	return (
		<TableNG
			data={frame} width={width} height={height} timeRange={timeRange} structureRev={data.structureRev} fieldConfig={fieldConfig} noHeader={!options.showHeader}
			showTypeIcons={options.showTypeIcons} initialSortBy={options.sortBy} cellHeight={options.cellHeight} enableVirtualization={false} resizable
		/>
	);
}

function Text({ options }: PanelProps<any>) {
	if (options.mode !== "markdown") {
		throw new Error(`a text is no ${options.mode}`);
	}
	return <div className="markdown-html" style={{ height: "100%", overflow: "auto" }} dangerouslySetInnerHTML={{ __html: renderTextPanelMarkdown(options.content) }} />;
}

// The only panel that no package draws: rows of colored time, with Grafana's colors,
// texts and legend.
function Timeline({ data, options, width, height, timeRange, fieldConfig }: PanelProps<any>) {
	const rows = useMemo(() => data.series.flatMap((frame) => {
		const time = frame.fields.find((field) => field.type === FieldType.time);
		return frame.fields.filter((field) => field.type === FieldType.number).map((field) => ({
			name: getFieldDisplayName(field, frame, data.series),
			states: field.values.map((value, i) => ({ at: time!.values[i], value, shown: field.display!(value) })),
		}));
	}).slice(0, options.perPage), [data.series, options.perPage]);
	if (rows.length === 0) {
		return <Nothing fieldConfig={fieldConfig} />;
	}
	const legend = new Map(rows.flatMap((row) => row.states.map(({ shown }) => [formattedValueToString(shown), shown.color] as const)));
	const names = Math.min(width / 3, 8 * Math.max(...rows.map((row) => row.name.length)));
	const each = (height - 30) / rows.length;
	const from = timeRange.from.valueOf();
	const scale = (width - names) / (timeRange.to.valueOf() - from);
	return (
		<>
			<svg width={width} height={height - 30}>
				{rows.map((row, y) => (
					<g key={row.name} transform={`translate(0,${y * each})`}>
						<text y={each / 2} fill="currentColor" dominantBaseline="middle" fontSize={Math.min(12, each)}>{row.name}</text>
						{row.states.map(({ at, value, shown }, i) => value !== null && (
							<rect key={at} data-state={formattedValueToString(shown)} x={names + Math.max(0, at - from) * scale} y={(1 - options.rowHeight) / 2 * each} height={each * options.rowHeight}
								width={Math.max(0, (row.states[i + 1]?.at ?? at) - Math.max(at, from)) * scale} fill={shown.color} />
						))}
					</g>
				))}
			</svg>
			<VizLegend displayMode={options.legend.displayMode} placement={options.legend.placement} items={[...legend].map(([label, color]) => ({ label, color, yAxis: 1 }))} />
		</>
	);
}

// What a panel knows of a field beside the properties of every field, and what they
// are if nobody says so.
function custom(defaults: Record<string, unknown>) {
	return {
		useCustomConfig: (builder: any) => {
			for (const [path, defaultValue] of Object.entries(defaults)) {
				builder.addCustomEditor({ id: path, path, name: path, defaultValue, editor: () => null, override: () => null, process: (value: unknown) => value, shouldApply: () => true });
			}
		},
	};
}

export const panels: Record<string, PanelPlugin> = {
	timeseries: new PanelPlugin(Graph).useFieldConfig(custom({
		drawStyle: "line", lineInterpolation: "linear", lineWidth: 1, lineStyle: undefined, fillOpacity: 0, gradientMode: "none", showPoints: "auto", pointSize: 5, spanNulls: false,
		stacking: { mode: "none", group: "A" }, thresholdsStyle: { mode: "off" }, barAlignment: 0, axisPlacement: "auto", axisLabel: "", axisColorMode: "text",
		axisBorderShow: false, axisCenteredZero: false, axisSoftMin: undefined, axisSoftMax: undefined, scaleDistribution: { type: "linear" }, hideFrom: { tooltip: false, viz: false, legend: false },
	})),
	stat: new PanelPlugin(Stat).useFieldConfig(),
	bargauge: new PanelPlugin(Bars).useFieldConfig(),
	table: new PanelPlugin(Table).useFieldConfig(custom({ align: "auto", width: undefined, minWidth: undefined, cellOptions: { type: "auto" }, inspect: false, filterable: false, hidden: false })),
	text: new PanelPlugin(Text),
	"state-timeline": new PanelPlugin(Timeline).useFieldConfig(custom({ lineWidth: 0, fillOpacity: 70, spanNulls: false, hideFrom: { tooltip: false, viz: false, legend: false } })),
};
