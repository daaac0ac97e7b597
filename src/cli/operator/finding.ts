/** What one check of the doctor found; `mend` says what to do where it is not well. */
export interface Finding {
  ok: boolean;
  detail: string;
  mend: string | null;
}

export const well = (detail: string): Finding => ({ ok: true, detail, mend: null });
export const ill = (detail: string, mend: string): Finding => ({ ok: false, detail, mend });
