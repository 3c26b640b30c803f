// bundle.mjs FOLDER writes the page, with the packages that it is made of.
import { readFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import esbuild from "esbuild";

const [folder] = process.argv.slice(2);
await esbuild.build({
	entryPoints: ["main.tsx"],
	outdir: folder,
	bundle: true,
	splitting: true,
	format: "esm",
	jsx: "automatic",
	minify: true,
	define: { "process.env.NODE_ENV": '"production"' },
	loader: { ".svg": "dataurl", ".png": "dataurl", ".ttf": "dataurl", ".woff": "dataurl", ".woff2": "dataurl" },
	logLevel: "warning",
	plugins: [
		{
			// @grafana/scenes has builders for panels that ask the schema of tables for
			// defaults which it no longer has. The page builds no panel with them.
			name: "defaults of tables",
			setup: (build) =>
				build.onLoad({ filter: /composable\/table\/panelcfg\/x\/types\.gen\.mjs$/ }, ({ path }) => {
					const text = readFileSync(path, "utf8");
					return { contents: text.includes("defaultOptions") ? text : `${text}\nexport const defaultOptions = {};` };
				}),
		},
	],
});
await cp("index.html", `${folder}/index.html`);
await cp("node_modules/@grafana/ui/dist/public", `${folder}/public/build`, { recursive: true });
// Grafana's server has the fonts.
const fonts = [
	["inter/files/inter-latin-400-normal.woff2", "inter/Inter-Regular.woff2"],
	["inter/files/inter-latin-400-italic.woff2", "inter/Inter-Italic.woff2"],
	["inter/files/inter-latin-500-normal.woff2", "inter/Inter-Medium.woff2"],
	["inter/files/inter-latin-500-italic.woff2", "inter/Inter-MediumItalic.woff2"],
	["roboto-mono/files/roboto-mono-latin-400-normal.woff2", "roboto/L0xTDF4xlVMF-BfR8bXMIhJHg45mwgGEFl0_3vrtSM1J-gEPT5Ese6hmHSh0mQ.woff2"],
];
for (const [from, to] of fonts) {
	await cp(`node_modules/@fontsource/${from}`, `${folder}/public/fonts/${to}`);
}
