// What Grafana's packages ask of the application that they are part of.
import {
	DataSourceApi,
	EventBusSrv,
	LoadingState,
	PanelData,
	PanelPlugin,
	PluginType,
	dataLinksOverrideProcessor,
	displayNameOverrideProcessor,
	identityOverrideProcessor,
	numberOverrideProcessor,
	standardFieldConfigEditorRegistry,
	standardTransformers,
	standardTransformersRegistry,
	stringOverrideProcessor,
	thresholdsOverrideProcessor,
	unitOverrideProcessor,
	valueMappingsOverrideProcessor,
} from "@grafana/data";
import { initPluginTranslations } from "@grafana/i18n";
import { setAppEvents, setPluginImportUtils, setRunRequest, setTemplateSrv } from "@grafana/runtime";
import { registerRuntimeDataSource, sceneGraph } from "@grafana/scenes";
import { Observable, catchError, from, map, of, startWith } from "rxjs";
import { panels } from "./panels";
import { Prometheus } from "./prometheus";

// The properties of every field. Their order is the one they are applied in.
const properties: Record<string, (...args: any[]) => unknown> = {
	unit: unitOverrideProcessor,
	min: numberOverrideProcessor,
	max: numberOverrideProcessor,
	decimals: numberOverrideProcessor,
	displayName: displayNameOverrideProcessor,
	noValue: stringOverrideProcessor,
	color: identityOverrideProcessor,
	thresholds: thresholdsOverrideProcessor,
	mappings: valueMappingsOverrideProcessor,
	links: dataLinksOverrideProcessor,
};

// run asks a data source and says what became of it.
function run(source: DataSourceApi, request: any): Observable<PanelData> {
	const empty = { series: [], timeRange: request.range, request };
	return from(source.query(request)).pipe(
		map((answer) => ({ ...empty, state: LoadingState.Done, series: answer.data })),
		catchError((error) => of({ ...empty, state: LoadingState.Error, errors: [{ message: String(error.message ?? error) }] })),
		startWith({ ...empty, state: LoadingState.Loading }),
	);
}

export async function start(interval: string) {
	await initPluginTranslations("grafana");
	setAppEvents(new EventBusSrv());
	// One is there under two names.
	const transformations = [...new Set<any>(Object.values(standardTransformers))];
	standardTransformersRegistry.setInit(() => transformations.map((transformation) => ({ id: transformation.id, name: transformation.name, transformation }) as any));
	standardFieldConfigEditorRegistry.setInit(() =>
		Object.entries(properties).map(
			([id, process]) => ({ id, path: id, name: id, process, shouldApply: () => true, editor: () => null, override: () => null, settings: {} }) as any,
		),
	);
	const plugins = new Map<string, PanelPlugin>();
	for (const [id, plugin] of Object.entries(panels)) {
		plugin.meta = { id, name: id, type: PluginType.panel, sort: 0, module: "", baseUrl: "", info: { version: "" }, skipDataQuery: id === "text" } as any;
		plugins.set(id, plugin);
	}
	setPluginImportUtils({
		getPanelPluginFromCache: (id: string) => plugins.get(id),
		importPanelPlugin: async (id: string) => {
			throw new Error(`no panel is called ${id}`);
		},
	} as any);
	setRunRequest(run as any);
	setTemplateSrv({
		replace: (text: string, scoped: any, format: any) => sceneGraph.interpolate(scoped.__sceneObject.value.valueOf(), text, scoped, format),
		getVariables: () => [],
		containsTemplate: () => false,
		updateTimeRange: () => undefined,
	} as any);
	registerRuntimeDataSource({ dataSource: new Prometheus(interval) });
}
