// A dashboard's file as a scene, which is what Grafana itself makes of it.
import {
	EmbeddedScene,
	QueryVariable,
	SceneDataTransformer,
	SceneGridItem,
	SceneGridLayout,
	SceneGridRow,
	SceneQueryRunner,
	SceneTimeRange,
	SceneVariableSet,
	VariableValueSelectors,
	VizPanel,
} from "@grafana/scenes";

export type Board = Record<string, any>;

function vizPanel(panel: any, minInterval: string) {
	const queries = panel.targets?.length
		? new SceneQueryRunner({ datasource: panel.datasource, queries: panel.targets, maxDataPointsFromWidth: true, minInterval })
		: undefined;
	return new VizPanel({
		key: `panel-${panel.id}`,
		title: panel.title,
		description: panel.description,
		pluginId: panel.type,
		options: panel.options,
		fieldConfig: panel.fieldConfig,
		displayMode: panel.transparent ? "transparent" : "default",
		$data: queries && new SceneDataTransformer({ $data: queries, transformations: panel.transformations ?? [] }),
	});
}

export function sceneOf(board: Board, from: string, to: string, minInterval: string) {
	const children: (SceneGridItem | SceneGridRow)[] = [];
	let row: SceneGridItem[] | undefined;
	for (const panel of board.panels) {
		const { x, y, w: width, h: height } = panel.gridPos;
		if (panel.type === "row") {
			row = (panel.panels ?? []).map((inner: any) => gridItem(inner, minInterval));
			children.push(new SceneGridRow({ key: `row-${panel.id}`, title: panel.title, isCollapsed: panel.collapsed, x, y, width, height, children: row }));
			continue;
		}
		(row ?? children).push(gridItem(panel, minInterval));
	}
	return new EmbeddedScene({
		$timeRange: new SceneTimeRange({ from, to, timeZone: "utc" }),
		$variables: new SceneVariableSet({ variables: board.templating.list.map(variable) }),
		controls: [new VariableValueSelectors({})],
		body: new SceneGridLayout({ children, isLazy: false }),
	});
}

function gridItem(panel: any, minInterval: string) {
	const { x, y, w: width, h: height } = panel.gridPos;
	return new SceneGridItem({ x, y, width, height, body: vizPanel(panel, minInterval) });
}

function variable(one: any) {
	if (one.type !== "query") {
		throw new Error(`no variable is a ${one.type}`);
	}
	const { name, label, description, datasource, query, refresh, sort, regex, includeAll, allValue, allowCustomValue } = one;
	return new QueryVariable({
		name, label, description, datasource, query, refresh, sort, regex, includeAll, allValue, allowCustomValue,
		isMulti: one.multi,
		value: one.current?.value,
		text: one.current?.text,
	});
}
