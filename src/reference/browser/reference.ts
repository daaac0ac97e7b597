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

/** What the viewer leaves out for those who hear the page, or use it with the keyboard. */
function complete(): void {
  for (const select of document.querySelectorAll("#reference select:not([aria-label])")) {
    const isExample = select.classList.contains("examples-select-element");
    select.setAttribute(
      "aria-label",
      isExample ? "Example" : select.closest(".scheme-container") ? "Server" : "Media type",
    );
  }
  for (const box of document.querySelectorAll("#reference :is(.microlight, .model-box):not([tabindex])")) {
    box.setAttribute("tabindex", "0");
  }
  // A button has no link inside: it opens the operation, and puts its address into the location, by itself.
  for (const link of document.querySelectorAll("#reference .opblock-summary-control a[href]"))
    link.removeAttribute("href");
  for (const about of document.querySelectorAll("#reference .info:not([role])")) {
    about.setAttribute("role", "region");
    about.setAttribute("aria-label", "About the API");
  }
  // Its title is of level 1, and the sections are the next ones.
  for (const heading of document.querySelectorAll("#reference :is(h3, h4, h5):not([aria-level])")) {
    heading.setAttribute("aria-level", String(Number(heading.tagName.slice(1)) - 1));
  }
}
let isDue = false;
const completeSoon = () => {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    complete();
  });
};
new MutationObserver(completeSoon).observe(document.documentElement, { childList: true, subtree: true });

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
