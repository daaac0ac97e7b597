import { askBeforeLeaving } from "./api.ts";
import { attempt, make, part, watchWriting } from "./dom.ts";
import type { DueTimes } from "./due-times.ts";
import type { Schedule } from "./records.ts";
import { ownZone, simpleCron, toldIn, whenIn } from "./times.ts";

/** What a person decides about a schedule. */
export type ScheduleWishes = Pick<
  Schedule,
  | "name"
  | "message"
  | "cron"
  | "everySeconds"
  | "timeZone"
  | "announce"
  | "missed"
  | "activeHours"
  | "conversation"
  | "model"
>;

export interface ScheduleForm {
  /** Shows this one, unless something is written there: then it says that this comes first. */
  edit(schedule: Schedule): void;
  /** Shows it for this agent: what is half written for another stays, until that is shown again. */
  of(agentId: string): void;
  /** Resets it for this agent, unless something else than this is edited there by now. */
  saved(agentId: string, schedule: Schedule | null): void;
}

interface Draft {
  edited: Schedule | null;
  /** Of the form's fields, in order. */
  values: (string | boolean)[];
}

const PREVIEWED = 5;
const field = (name: string) => part(`schedule-${name}`, HTMLInputElement);

/**
 * The form to plan something, or to change it; `save` is given what is edited, or null for something new, and tells
 * the form that it is saved if it is still wanted.
 */
export function armScheduleForm(
  { isPattern, isTimeZone, nextTimes }: DueTimes,
  save: (wishes: ScheduleWishes, edited: Schedule | null) => Promise<void>,
): ScheduleForm {
  const form = part("schedule-form", HTMLFormElement);
  const fold = part("schedule-fold", HTMLDetailsElement);
  const repeat = part("schedule-repeat", HTMLSelectElement);
  const message = part("schedule-message", HTMLTextAreaElement);
  const preview = part("schedule-preview", HTMLOListElement);
  const [time, minutes, cron, zone] = [field("time"), field("minutes"), field("cron"), field("zone")];
  const [from, to, model] = [field("from"), field("to"), field("model")];
  const more = part("schedule-more", HTMLDetailsElement);
  const isWritten = watchWriting(form);
  const fields = [...form.elements].filter(
    (one) => one instanceof HTMLInputElement || one instanceof HTMLSelectElement || one instanceof HTMLTextAreaElement,
  );
  let edited: Schedule | null = null;
  let owner = "";
  /** What is half written, by agent, except for the one that is shown. */
  const drafts = new Map<string, Draft>();

  function wishes(): ScheduleWishes {
    const [hour, minute] = time.value.split(":").map(Number);
    const isInterval = repeat.value === "interval";
    const days = repeat.value === "weekdays" ? "1-5" : "*";
    const pattern = repeat.value === "cron" ? cron.value.trim() : `${minute} ${hour} * * ${days}`;
    return {
      name: field("name").value.trim(),
      message: message.value,
      cron: isInterval ? null : pattern,
      everySeconds: isInterval ? Math.round(minutes.valueAsNumber * 60) : null,
      timeZone: zone.value.trim(),
      announce: field("announce").checked,
      missed: field("catch-up").checked ? "run_once" : "skip",
      activeHours: from.value === "" || to.value === "" ? null : { from: from.value, to: to.value },
      conversation: field("default").checked ? "default" : "own",
      model: model.value.trim() || null,
    };
  }

  /** Of the active hours both ends are needed, or none. */
  const isHalf = () => (from.value === "") !== (to.value === "");

  /** Says what is wrong, where it stands. */
  function check({ cron: pattern, everySeconds, timeZone }: ScheduleWishes): boolean {
    field("name").setCustomValidity("");
    zone.setCustomValidity(isTimeZone(timeZone) ? "" : "Expected a name such as Europe/Berlin or UTC.");
    const isDue = pattern === null || isPattern(pattern);
    const at = repeat.value === "cron" ? cron : time;
    for (const input of [cron, time]) input.setCustomValidity("");
    at.setCustomValidity(isDue ? "" : "Expected a time, or five fields that are due some day, such as 0 8 * * 1-5.");
    const isNumber = everySeconds === null || !Number.isNaN(everySeconds);
    minutes.setCustomValidity(isNumber ? "" : "Expected a number of minutes, such as 60.");
    to.setCustomValidity(isHalf() ? "Expected both, from and to, or neither." : "");
    return !isHalf() && isDue && isTimeZone(timeZone) && (everySeconds === null || everySeconds >= 60);
  }

  function show(): void {
    part("schedule-by-time", HTMLElement).hidden = !["daily", "weekdays"].includes(repeat.value);
    part("schedule-by-interval", HTMLElement).hidden = repeat.value !== "interval";
    part("schedule-by-cron", HTMLElement).hidden = repeat.value !== "cron";
    // What is not shown is not checked either.
    minutes.disabled = repeat.value !== "interval";
    const wanted = wishes();
    const times = check(wanted) ? nextTimes(wanted, PREVIEWED) : [];
    preview.replaceChildren(...times.map((at) => make("li", "", whenIn(toldIn(wanted), at))));
    if (times.length === 0) preview.append(make("li", "soft", "None: something above is not right yet."));
  }

  function reset(next: Schedule | null = null): void {
    edited = next;
    form.reset();
    fold.open = false;
    more.open = false;
    part("schedule-form-title", HTMLElement).textContent = next ? "Change it" : "Plan something";
    part("schedule-save", HTMLButtonElement).textContent = next ? "Save" : "Plan it";
    show();
  }

  function resume(draft: Draft): void {
    reset(draft.edited);
    for (const [at, value] of draft.values.entries()) {
      const one = fields[at];
      if (typeof value === "string" && one) one.value = value;
      else if (typeof value === "boolean" && one instanceof HTMLInputElement) one.checked = value;
    }
    fold.open = true;
    // It is as if it had just been written.
    form.dispatchEvent(new Event("input"));
  }

  form.noValidate = true;
  zone.defaultValue = ownZone();
  askBeforeLeaving(() => isWritten() || drafts.size > 0);
  form.addEventListener("input", show);
  part("schedule-cancel", HTMLButtonElement).addEventListener("click", () => {
    reset();
    fold.querySelector("summary")?.focus();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    check(wishes());
    // What is wrong must be seen.
    if (!to.validity.valid) more.open = true;
    if (!form.reportValidity()) return;
    void attempt(form, () => save(wishes(), edited));
  });

  return {
    of(agentId) {
      if (agentId === owner) return;
      if (isWritten()) {
        const values = fields.map((one) =>
          one instanceof HTMLInputElement && one.type === "checkbox" ? one.checked : one.value,
        );
        drafts.set(owner, { edited, values });
      }
      owner = agentId;
      const draft = drafts.get(agentId);
      drafts.delete(agentId);
      if (draft) resume(draft);
      else reset();
    },
    saved(agentId, schedule) {
      if (agentId !== owner && drafts.get(agentId)?.edited === schedule) drafts.delete(agentId);
      if (agentId === owner && schedule === edited) reset();
    },
    edit(schedule) {
      if (isWritten()) {
        fold.open = true;
        field("name").setCustomValidity("First save or cancel what is written here.");
        field("name").reportValidity();
        return;
      }
      reset(schedule);
      const simple = schedule.cron === null ? null : simpleCron(schedule.cron);
      field("name").value = schedule.name;
      message.value = schedule.message;
      zone.value = schedule.timeZone;
      field("announce").checked = schedule.announce;
      field("catch-up").checked = schedule.missed === "run_once";
      field("default").checked = schedule.conversation === "default";
      from.value = schedule.activeHours?.from ?? "";
      to.value = schedule.activeHours?.to ?? "";
      model.value = schedule.model ?? "";
      if (schedule.everySeconds !== null) minutes.value = String(schedule.everySeconds / 60);
      if (schedule.cron !== null) cron.value = schedule.cron;
      if (simple) time.value = simple.time;
      repeat.value = schedule.cron === null ? "interval" : !simple ? "cron" : simple.isDaily ? "daily" : "weekdays";
      fold.open = true;
      show();
      field("name").focus();
    },
  };
}
