import { everyInWords } from "../../lib/every-in-words.ts";
import { roost } from "./api.ts";
import { attempt, confirmPress, make, makeButton, nameOf, part, reportErrors } from "./dom.ts";
import type { DueTimes } from "./due-times.ts";
import { AGENT, type Agent, type Schedule, type Slot } from "./records.ts";
import { armScheduleForm } from "./schedule-form.ts";
import { cronInWords, ownZone, toldIn, whenIn } from "./times.ts";

const section = part("schedules", HTMLElement);
const list = part("schedule-list", HTMLUListElement);
const told = part("schedule-told", HTMLElement);
const beatOn = part("heartbeat-on", HTMLInputElement);
const beatMinutes = part("heartbeat-minutes", HTMLInputElement);

const SCHEDULES = `${AGENT}/schedules` as const;
const SCHEDULE = `${SCHEDULES}/{scheduleId}` as const;
/** Times that the strip shows. */
const STRIP = 40;

/** What an agent does at certain times. Returns a function that shows it. */
export function openSchedules(dueTimes: DueTimes): (instanceId: string, agent: Agent) => Promise<void> {
  let path = { instanceId: "", agentId: "" };
  /** As it is, or was before it was switched off: its hours are not in the form. */
  let heartbeat: Agent["heartbeat"] = null;
  const form = armScheduleForm(dueTimes, async (settings, edited) => {
    const of = path;
    // The news of before may read the same.
    told.textContent = "";
    const { name } = edited
      ? await roost.patch(SCHEDULE, { path: { ...of, scheduleId: edited.scheduleId }, body: settings })
      : await roost.post(SCHEDULES, { path: of, body: settings });
    form.saved(of.agentId, edited);
    if (of !== path) return;
    await read(of, `${name} is planned.`);
  });

  async function read(of: typeof path, news = ""): Promise<void> {
    const [schedules, agent] = await Promise.all([
      Array.fromAsync(roost.all(SCHEDULES, { path: of })),
      roost.get(AGENT, { path: of }),
    ]);
    const rows = await Promise.all(schedules.map(async (one) => row(of, one, await slotsOf(of, one))));
    if (of !== path) return;
    list.replaceChildren(...rows);
    section.classList.remove("loading");
    heartbeat = agent.heartbeat ?? heartbeat;
    const beat = schedules.find(({ kind }) => kind === "heartbeat");
    beatOn.checked = beat?.enabled ?? false;
    if (heartbeat) beatMinutes.value = String(Math.max(5, Math.round(heartbeat.everySeconds / 60)));
    told.textContent = news;
    if (news !== "") told.focus();
  }

  const slotsOf = async (of: typeof path, { scheduleId }: Schedule): Promise<Slot[]> =>
    (await roost.get(`${SCHEDULE}/slots`, { path: { ...of, scheduleId }, query: { limit: STRIP } })).data;

  function row(of: typeof path, schedule: Schedule, slots: Slot[]): HTMLLIElement {
    const { scheduleId, name, kind, enabled } = schedule;
    const at = { ...of, scheduleId };
    const isBeat = kind === "heartbeat";
    const controls = make("p", "row");
    if (!isBeat)
      controls.append(switchFor(schedule, (is) => roost.patch(SCHEDULE, { path: at, body: { enabled: is } })));
    const run = makeButton("Run now", "quiet", async () => {
      await roost.post(`${SCHEDULE}/run`, { path: at });
      if (of === path) told.replaceChildren(nameOf(name), " runs now.");
      told.focus();
    });
    run.setAttribute("aria-label", `Run now: ${name}`);
    controls.append(run);
    if (!isBeat) {
      const edit = makeButton("Edit", "quiet", async () => form.edit(schedule));
      edit.setAttribute("aria-label", `Edit ${name}`);
      const remove = make("button", "quiet", "Delete");
      remove.type = "button";
      remove.setAttribute("aria-label", `Delete ${name}`);
      confirmPress(remove, "Really delete?", async () => {
        await roost.delete(SCHEDULE, { path: at });
        if (of === path) await read(of, `${name} is deleted.`);
      });
      controls.append(edit, remove);
    }
    return make(
      "li",
      "schedule",
      make("h3", "", nameOf(name)),
      make("p", "", whenOf(schedule)),
      make("p", "soft", enabled ? lastOf(slots, toldIn(schedule)) : offOf(schedule)),
      ...(slots.length === 0 ? [] : [stripOf(slots), historyOf(slots, schedule)]),
      controls,
    );
  }

  function switchFor({ name, enabled }: Schedule, save: (is: boolean) => Promise<unknown>): HTMLElement {
    const box = make("input");
    box.type = "checkbox";
    box.checked = enabled;
    box.setAttribute("aria-label", `${name} is on`);
    box.addEventListener("change", () => {
      const of = path;
      void reportErrors(box, async () => {
        try {
          await save(box.checked);
        } catch (error) {
          box.checked = !box.checked;
          throw error;
        }
        if (of === path) await read(of, `${name} is ${box.checked ? "on" : "off"}.`);
      });
    });
    return make("label", "switch", box, " On");
  }

  const heartbeatForm = part("heartbeat-form", HTMLFormElement);
  heartbeatForm.addEventListener("submit", (event) => event.preventDefault());
  heartbeatForm.addEventListener("change", ({ target }) => {
    if (target === beatMinutes && !beatOn.checked) return;
    if (beatOn.checked && !beatMinutes.reportValidity()) {
      // It is not on before its minutes are right.
      if (target === beatOn) beatOn.checked = false;
      return;
    }
    const of = path;
    const hours = heartbeat ?? { timeZone: ownZone(), activeHours: null };
    const body = { heartbeat: beatOn.checked ? { ...hours, everySeconds: beatMinutes.valueAsNumber * 60 } : null };
    void attempt(heartbeatForm, async () => {
      try {
        await roost.patch(AGENT, { path: of, body });
      } catch (error) {
        if (target === beatOn && of === path) beatOn.checked = !beatOn.checked;
        throw error;
      }
      if (of === path) await read(of, `The heartbeat is ${body.heartbeat ? "on" : "off"}.`);
    });
  });

  // This script is loaded late, and what was written before would be lost.
  for (const forms of [heartbeatForm, part("schedule-fold", HTMLElement)]) forms.inert = false;

  return async (instanceId, agent) => {
    // Who comes back to the same agent sees what comes of what was sent before.
    if (path.agentId !== agent.agentId) path = { instanceId, agentId: agent.agentId };
    form.of(agent.agentId);
    heartbeat = null;
    part("schedules-of", HTMLElement).textContent = agent.displayName;
    told.textContent = "";
    list.replaceChildren();
    section.classList.add("loading");
    await read(path);
  };
}

/** `Every day at 08:00 · next tomorrow at 08:00` */
function whenOf(schedule: Schedule): string {
  const { cron, everySeconds, activeHours, nextAt } = schedule;
  const timeZone = toldIn(schedule);
  const zone = timeZone === ownZone() ? "" : ` (${timeZone})`;
  const hours = activeHours === null ? "" : `, ${activeHours.from} to ${activeHours.to}`;
  const when = (cron === null ? everyInWords(everySeconds ?? 0) : cronInWords(cron)) + hours;
  const next = nextAt === null ? "" : ` · next ${whenIn(timeZone, Date.parse(nextAt))}`;
  return when.charAt(0).toUpperCase() + when.slice(1) + zone + next;
}

const WORDS: Record<Slot["status"], string> = { ran: "ran", skipped: "skipped", missed: "missed", failed: "failed" };

const lastOf = ([last]: Slot[], timeZone: string): string =>
  last === undefined
    ? "It has not been due yet."
    : `Last ${whenIn(timeZone, Date.parse(last.slotAt))}: ${outcomeOf(last)}.`;

const outcomeOf = ({ status, reason }: Slot): string => WORDS[status] + (reason === null ? "" : `, ${reason}`);

const offOf = ({ failuresInARow }: Schedule): string =>
  failuresInARow >= 5 ? `Switched off after ${failuresInARow} failures in a row.` : "It is off.";

/** A bar for each of the last times, the oldest first. */
function stripOf(slots: Slot[]): HTMLElement {
  const bars = slots.toReversed().map(({ status }) => make("span", status));
  const counts = (Object.keys(WORDS) as Slot["status"][])
    .map((status) => [slots.filter((slot) => slot.status === status).length, WORDS[status]] as const)
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`);
  const strip = make("div", "strip", ...bars);
  strip.role = "img";
  strip.setAttribute("aria-label", `Of the last ${slots.length} times: ${counts.join(", ")}`);
  return strip;
}

function historyOf(slots: Slot[], schedule: Schedule): HTMLElement {
  const summary = make("summary", "soft", "What became of its times");
  summary.setAttribute("aria-label", `What became of its times: ${schedule.name}`);
  const line = (slot: Slot) =>
    make(
      "li",
      "",
      make("b", slot.status, WORDS[slot.status]),
      ` ${whenIn(toldIn(schedule), Date.parse(slot.slotAt))}`,
      reasonOf(slot),
    );
  const lines = make("ul", "", ...slots.map(line));
  // It scrolls, so it must be reachable by keyboard.
  lines.tabIndex = 0;
  return make("details", "history", summary, lines);
}

const reasonOf = ({ reason }: Slot): Node | string => (reason === null ? "" : make("bdi", "soft", ` · ${reason}`));
