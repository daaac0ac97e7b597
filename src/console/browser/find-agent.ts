import { part } from "./dom.ts";

/** Fewer are seen at a glance. */
const LISTED = 12;

const field = part("find-agent", HTMLInputElement);
const list = part("instance-list", HTMLUListElement);

/** Shows the agents whose names have what is looked for, of those that are listed. Called when others are listed. */
export function showFound(): void {
  const links = [...list.querySelectorAll("a")];
  field.hidden = links.length <= LISTED && field.value === "";
  const wanted = field.value.trim().toLowerCase();
  for (const link of links) {
    const item = link.closest("li");
    if (item) item.hidden = !link.textContent.toLowerCase().includes(wanted);
  }
}

field.addEventListener("input", showFound);
