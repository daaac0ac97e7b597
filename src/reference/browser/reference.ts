/** Shows /openapi.json with Swagger UI, which the page loads first. */

type Spec = { getIn(path: string[]): { has(type: string): boolean } | undefined };
type AllowTryOut = (state: { get(name: string): Spec | undefined }, path: string, method: string) => boolean;

declare const SwaggerUIBundle: (options: Record<string, unknown>) => void;

const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

/** The viewer waits for the end of a response, which an event stream does not have. */
const withoutStreams =
  (allowed: AllowTryOut) =>
  (state: Parameters<AllowTryOut>[0], path: string, method: string): boolean => {
    const content = state.get("json")?.getIn(["paths", path, method, "responses", "200", "content"]);
    const isStream = content?.has("text/event-stream") === true && !content.has("application/json");
    return !isStream && allowed(state, path, method);
  };

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  // A key is kept only as long as the page: nothing is stored.
  persistAuthorization: false,
  // Highlighting doubles the time that it takes to open an operation.
  syntaxHighlight: false,
  validatorUrl: null,
  plugins: [{ statePlugins: { spec: { wrapSelectors: { allowTryItOutFor: withoutStreams } } } }],
});
