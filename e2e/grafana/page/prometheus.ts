// A data source in place of Grafana's for Prometheus, which is no package: the same
// queries, and answers as the same frames.
import { DataFrame, DataQueryRequest, FieldType, MetricFindValue, createDataFrame, rangeUtil } from "@grafana/data";
import { getTemplateSrv } from "@grafana/runtime";
import { RuntimeDataSource } from "@grafana/scenes";

type Series = { metric: Record<string, string>; values?: [number, string][]; value?: [number, string] };

export class Prometheus extends RuntimeDataSource<any> {
	constructor(interval: string) {
		super("prometheus", "prometheus");
		this.interval = interval;
	}

	async query(request: DataQueryRequest<any>) {
		const tables = request.targets.filter((target) => target.format === "table").length;
		const answers = await Promise.all(request.targets.map((target) => this.ask(request, target, tables > 1)));
		return { data: answers.flat() };
	}

	private async ask(request: DataQueryRequest<any>, target: any, several: boolean): Promise<DataFrame[]> {
		const source = rangeUtil.intervalToSeconds(this.interval!);
		const step = request.intervalMs / 1000;
		const range = Math.round((request.range.to.valueOf() - request.range.from.valueOf()) / 1000);
		const seconds = (value: number) => ({ text: `${value}s`, value: `${value}s` });
		const query = getTemplateSrv().replace(
			target.expr,
			{ ...request.scopedVars, __range: seconds(range), __rate_interval: seconds(Math.max(step + source, 4 * source)) },
			quoted,
		);
		const end = request.range.to.valueOf() / 1000;
		const found: Series[] = target.instant
			? await get("query", { query, time: String(end) })
			: await get("query_range", {
					query,
					start: String(Math.floor(request.range.from.valueOf() / 1000 / step) * step),
					end: String(Math.floor(end / step) * step),
					step: String(step),
				});
		return target.format === "table" ? [table(target.refId, found, several)] : found.map((one) => series(target, one));
	}

	async metricFindQuery(query: any, options?: any): Promise<MetricFindValue[]> {
		const text = getTemplateSrv().replace(query.query, options.scopedVars, quoted);
		const parts = /^label_values\((.*),\s*(\w+)\)$/.exec(text);
		if (!parts) {
			throw new Error(`the query of a variable is not understood: ${text}`);
		}
		const values: string[] = await get(`label/${parts[2]}/values`, {
			"match[]": parts[1],
			start: String(options.range.from.valueOf() / 1000),
			end: String(options.range.to.valueOf() / 1000),
		});
		return values.map((value) => ({ text: value }));
	}

	async testDatasource() {
		return { status: "success", message: "" };
	}
}

// quoted is a value of a variable in a query: several are a regular expression.
function quoted(value: string | string[]) {
	const one = (text: string) => text.replace(/\\/g, "\\\\\\\\").replace(/[$^*{}[\]'+?.()|/]/g, "\\\\$&");
	return Array.isArray(value) ? (value.length === 1 ? one(value[0]) : `(${value.map(one).join("|")})`) : one(value);
}

async function get(path: string, parameters: Record<string, string>) {
	const answer = await fetch(`/prometheus/api/v1/${path}?${new URLSearchParams(parameters)}`);
	const { status, data, error } = await answer.json();
	if (status !== "success") {
		throw new Error(error);
	}
	return data.result ?? data;
}

const number = (text: string) => ({ "+Inf": Infinity, "-Inf": -Infinity })[text] ?? Number(text);

function series(target: any, one: Series): DataFrame {
	const { __name__: name, ...labels } = one.metric;
	const points = one.values ?? [one.value!];
	const legend = target.legendFormat && target.legendFormat.replace(/\{\{\s*(.+?)\s*\}\}/g, (_: string, label: string) => one.metric[label] ?? "");
	const text = `${name ?? ""}{${Object.entries(labels).map(([label, value]) => `${label}="${value}"`).join(", ")}}`;
	return createDataFrame({
		refId: target.refId,
		fields: [
			{ name: "Time", type: FieldType.time, values: points.map(([at]) => at * 1000) },
			{
				name: "Value",
				type: FieldType.number,
				labels: one.metric,
				config: { displayNameFromDS: legend ?? (text === "{}" ? target.expr : text) },
				values: points.map(([, value]) => number(value)),
			},
		],
	});
}

function table(refId: string, found: Series[], several: boolean): DataFrame {
	const labels = [...new Set(found.flatMap((one) => Object.keys(one.metric)))].sort();
	const strings = labels.map((name) => ({ name, type: FieldType.string, config: { filterable: true }, values: found.map((one) => one.metric[name] ?? "") }));
	return createDataFrame({
		refId,
		fields: found.length === 0 ? [] : [
			{ name: "Time", type: FieldType.time, values: found.map((one) => one.value![0] * 1000) },
			...strings,
			{ name: several ? `Value #${refId}` : "Value", type: FieldType.number, values: found.map((one) => number(one.value![1])) },
		],
	});
}
