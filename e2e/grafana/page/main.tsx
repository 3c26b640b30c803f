// A page that draws one dashboard with the data of a Prometheus:
// ?board=NAME&from=TIME&to=TIME&interval=LEAST. When window.settled() is true, all
// panels have the answers to their queries, and window.panels() says what became of each.
import { createRoot } from "react-dom/client";
import { MemoryRouter } from "react-router-dom";
import { ThemeContext } from "@grafana/data";
import { config } from "@grafana/runtime";
import { GlobalStyles } from "@grafana/ui";
import { SceneObject, VizPanel, sceneGraph } from "@grafana/scenes";
import { sceneOf } from "./board";
import { start } from "./host";
import { report, settled } from "./report";

async function main() {
	const query = new URLSearchParams(location.search);
	const interval = query.get("interval")!;
	await start(interval);
	const board = await (await fetch(`/boards/${query.get("board")}.json`)).json();
	const scene = sceneOf(board, query.get("from")!, query.get("to")!, interval);
	createRoot(document.getElementById("root")!).render(
		<ThemeContext.Provider value={config.theme2}>
			<GlobalStyles />
			<MemoryRouter>
				<div style={{ padding: 16 }}>
					<h1>{board.title}</h1>
					<scene.Component model={scene} />
				</div>
			</MemoryRouter>
		</ThemeContext.Provider>,
	);
	const panels = sceneGraph.findAllObjects(scene, (object: SceneObject) => object instanceof VizPanel) as VizPanel[];
	Object.assign(window, {
		settled: () => panels.length > 0 && settled(panels),
		panels: () => panels.map(report),
	});
}

void main();
