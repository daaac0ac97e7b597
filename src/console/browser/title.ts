let [place, waiting] = ["", ""];

/** Names the window's or tab's title for what is shown, or for how much waits for a decision; "" for nothing. */
export function setTitle(parts: { place?: string; waiting?: string }): void {
  ({ place = place, waiting = waiting } = parts);
  const count = waiting === "" ? "" : `(${waiting}) `;
  document.title = count + (place === "" ? "Roost" : `${place} · Roost`);
}
