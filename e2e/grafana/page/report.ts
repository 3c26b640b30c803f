// What became of each panel.
import { DataFrame, FieldType, LoadingState, PanelData, fieldColorModeRegistry, fieldMatchers, fieldReducers, getValueFormats, standardTransformersRegistry } from "@grafana/data";
import { VizPanel, sceneGraph } from "@grafana/scenes";

export type Report = {
	title: string;
	type: string;
	// Nothing if a query has failed, or else what has.
	error?: string;
	// How many numbers the queries gave.
	values: number;
	// What it shows: its text, and whether that stands in place of data.
	text: string;
	nothing: boolean;
	// Whether something is drawn: lines, bars, cells.
	drawn: boolean;
	// Names that have no room: of the panel, its columns and bars.
	cut: string[];
	// Whether a cell has the text that stands in place of all of them.
	emptyCells: boolean;
	// Names in its settings that Grafana does not know.
	unknown: string[];
	// Fields that its settings name and its data has not.
	missing: string[];
	// Where the links in it lead.
	links: string[];
};

const units = new Set(getValueFormats().flatMap((category) => category.submenu!.map((format) => format.value)));

function dataOf(panel: VizPanel): PanelData | undefined {
	return sceneGraph.getData(panel).state.data;
}

export function settled(panels: VizPanel[]) {
	return panels.every((panel) => {
		const state = dataOf(panel)?.state;
		return panel.getPlugin() && (panel.state.pluginId === "text" || state === LoadingState.Done || state === LoadingState.Error);
	});
}

// painted says whether a canvas has a stroke whose color is no gray, as those of axes
// and their numbers are.
function painted(canvas: HTMLCanvasElement) {
	const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
	for (let i = 0; i < data.length; i += 4) {
		if (data[i + 3] > 100 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 40) {
			return true;
		}
	}
	return false;
}

// cut says whether a part of an element is outside of it. What overflows to the left is
// nothing that one can scroll to.
function cut(element: HTMLElement) {
	const { left, right } = element.getBoundingClientRect();
	const inside = document.createRange();
	inside.selectNodeContents(element);
	return element.scrollWidth > element.clientWidth || [...inside.getClientRects()].some((part) => part.width > 0 && (part.left < left - 1 || part.right > right + 1));
}

const marks: Record<string, (element: Element) => boolean> = {
	timeseries: (element) => [...element.querySelectorAll("canvas")].some(painted),
	stat: (element) => /\d/.test(element.textContent!),
	bargauge: (element) => element.querySelector("[data-testid*='Bar gauge']") !== null,
	table: (element) => element.querySelectorAll("[role=gridcell]").length > 0,
	text: (element) => element.querySelector(".markdown-html *") !== null,
	"state-timeline": (element) => element.querySelector("rect[data-state]") !== null,
};

export function report(panel: VizPanel): Report {
	const data = dataOf(panel);
	const shown = data && panel.applyFieldConfig(data);
	const element = document.querySelector(`[data-viz-panel-key="${panel.state.key}"]`)!;
	const numbers = (data?.series ?? []).flatMap((frame) => frame.fields.filter((field) => field.type === FieldType.number).flatMap((field) => field.values)).filter(Number.isFinite);
	return {
		title: panel.state.title,
		type: panel.state.pluginId,
		error: data?.errors?.[0]?.message ?? data?.error?.message ?? panel.state._pluginLoadError,
		values: numbers.length,
		text: (element as HTMLElement).innerText,
		nothing: element.querySelector("[data-nothing]") !== null,
		drawn: marks[panel.state.pluginId](element),
		cut: [...element.querySelectorAll<HTMLElement>("h2, [role=columnheader], [style*='text-overflow: ellipsis']")].filter(cut).map((one) => one.innerText),
		emptyCells: [...element.querySelectorAll<HTMLElement>("[role=gridcell]")].some((cell) => cell.innerText === panel.state.fieldConfig.defaults.noValue),
		unknown: unknown(panel),
		missing: missing(panel, data?.series ?? []),
		links: (shown?.series ?? []).flatMap((frame) => frame.fields.filter((field) => field.type !== FieldType.time).flatMap((field) => field.getLinks?.({ valueRowIndex: 0 }) ?? [])).map((link) => link.href),
	};
}

// unknown returns the names that no registry of Grafana has.
function unknown(panel: VizPanel) {
	const names: string[] = [];
	const check = (what: string, name: unknown, known: boolean) => known || names.push(`${what} ${JSON.stringify(name)}`);
	const registry = panel.getPlugin()!.fieldConfigRegistry;
	const { defaults, overrides } = panel.state.fieldConfig;
	const value = (id: string, setting: any) => {
		if (id === "unit" && setting) {
			check("unit", setting, units.has(setting));
		}
		if (id === "color" && setting) {
			check("color mode", setting.mode, fieldColorModeRegistry.getIfExists(setting.mode) !== undefined);
		}
	};
	for (const [id, setting] of Object.entries(defaults)) {
		if (id === "custom") {
			Object.keys(setting as any).forEach((key) => check("property", `custom.${key}`, registry.getIfExists(`custom.${key}`) !== undefined));
			continue;
		}
		check("property", id, panel.state.pluginId === "text" || registry.getIfExists(id) !== undefined);
		value(id, setting);
	}
	for (const { matcher, properties } of overrides) {
		check("matcher", matcher.id, fieldMatchers.getIfExists(matcher.id) !== undefined);
		for (const property of properties) {
			check("property", property.id, registry.getIfExists(property.id) !== undefined);
			value(property.id, property.value);
		}
	}
	const options: any = panel.state.options;
	for (const calculation of [...(options.reduceOptions?.calcs ?? []), ...(options.legend?.calcs ?? [])]) {
		check("calculation", calculation, fieldReducers.getIfExists(calculation) !== undefined);
	}
	for (const transformation of (panel.state.$data?.state as any)?.transformations ?? []) {
		check("transformation", transformation.id, standardTransformersRegistry.getIfExists(transformation.id) !== undefined);
	}
	return names;
}

// missing returns the fields that overrides, the order of rows and transformations name
// and that the data has not.
function missing(panel: VizPanel, frames: DataFrame[]) {
	const names: string[] = [];
	for (const { matcher } of panel.state.fieldConfig.overrides) {
		const match = fieldMatchers.get(matcher.id).get(matcher.options);
		if (!frames.some((frame) => frame.fields.some((field) => match(field, frame, frames)))) {
			names.push(`${matcher.id} ${matcher.options}`);
		}
	}
	for (const { displayName } of (panel.state.options as any).sortBy ?? []) {
		if (frames.length > 0 && !frames.some((frame) => frame.fields.some((field) => (field.config.displayName ?? field.name) === displayName))) {
			names.push(`sort by ${displayName}`);
		}
	}
	return names;
}
