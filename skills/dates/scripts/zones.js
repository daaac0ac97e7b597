/**
 * Tells what time it is elsewhere, with summer time. The sandbox has no time zones of its own: those below are the rules of
 * the tz database for 2025 to 2037, without Gaza and Hebron, whose dates are announced each year.
 *
 * Input: { "time": "2026-03-29T14:30", "from": "Europe/Berlin", "to": ["America/New_York", "Tokyo"] }. A time with an offset
 * ("2026-03-29T14:30+02:00", "…Z") needs no "from"; a zone may also be an offset. { "list": "Europe" } gives the names.
 * Result: { "utc": "2026-03-29T12:30:00Z", "from": {…}, "to": [{ "zone", "time", "offset", "weekday", "summerTime" }] }, and a
 * "note" where the given time comes twice or not at all.
 */

const FIRST_YEAR = 2025;
const LAST_YEAR = 2037;
const DAY = 1440;
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/**
 * When summer time begins and ends, each as month, weekday (Sunday is 0), the day from which that weekday is looked for,
 * and the minute of that day, in UTC or standard time; then by how many minutes it is ahead.
 */
const RULES = {
  EU: { utc: true, begins: [3, 0, 25, 60], ends: [10, 0, 25, 60], ahead: 60 },
  US: { utc: false, begins: [3, 0, 8, 120], ends: [11, 0, 1, 60], ahead: 60 },
  AU: { utc: false, begins: [10, 0, 1, 120], ends: [4, 0, 1, 120], ahead: 60 },
  NZ: { utc: true, begins: [9, 6, 23, 840], ends: [3, 6, 31, 840], ahead: 60 },
  CL: { utc: true, begins: [9, 0, 2, 240], ends: [4, 0, 2, 180], ahead: 60 },
  CU: { utc: false, begins: [3, 0, 8, 0], ends: [11, 0, 1, 0], ahead: 60 },
  EG: { utc: false, begins: [4, 5, 24, 0], ends: [10, 4, 25, 1380], ahead: 60 },
  IL: { utc: false, begins: [3, 5, 23, 120], ends: [10, 0, 25, 60], ahead: 60 },
  LB: { utc: false, begins: [3, 0, 25, 0], ends: [10, 6, 24, 1380], ahead: 60 },
  LH: { utc: false, begins: [10, 0, 1, 120], ends: [4, 0, 1, 90], ahead: 30 },
  TR: { utc: true, begins: [3, 0, 25, 60], ends: [10, 0, 25, 60], ahead: 120 },
};
/** Morocco is an hour behind around Ramadan: from and to these days, at 2:00 UTC. */
const MOROCCO =
  "2025-02-23 2025-04-06 2026-02-15 2026-03-22 2027-02-07 2027-03-14 2028-01-23 2028-03-05 2029-01-14 2029-02-18 " +
  "2029-12-30 2030-02-10 2030-12-22 2031-01-26 2031-12-14 2032-01-18 2032-11-28 2033-01-09 2033-11-20 2033-12-25 " +
  "2034-11-05 2034-12-17 2035-10-28 2035-12-09 2036-10-19 2036-11-23 2037-10-04 2037-11-15";

/** Minutes ahead of UTC in standard time, the rule of summer time, and the zones by region. */
const ZONES = [
  "-660 - Pacific/Midway,Niue,Pago_Pago",
  "-600 - Pacific/Honolulu,Rarotonga,Tahiti US/Hawaii",
  "-600 US America/Adak",
  "-570 - Pacific/Marquesas",
  "-540 - Pacific/Gambier",
  "-540 US America/Anchorage,Juneau,Metlakatla,Nome,Sitka,Yakutat US/Alaska",
  "-480 - Pacific/Pitcairn",
  "-480 US America/Los_Angeles,Tijuana,Vancouver US/Pacific",
  "-420 - America/Creston,Dawson,Dawson_Creek,Fort_Nelson,Hermosillo,Mazatlan,Phoenix,Whitehorse",
  "-420 US America/Boise,Cambridge_Bay,Ciudad_Juarez,Denver,Edmonton,Inuvik US/Mountain",
  "-360 - America/Bahia_Banderas,Belize,Chihuahua,Costa_Rica,El_Salvador,Guatemala,Managua,Merida,Mexico_City," +
    "Monterrey,Regina,Swift_Current,Tegucigalpa Pacific/Galapagos",
  "-360 CL Pacific/Easter",
  "-360 US America/Chicago,Matamoros,Menominee,Ojinaga,Rankin_Inlet,Resolute,Winnipeg America/Indiana/Knox," +
    "Tell_City America/North_Dakota/Beulah,Center,New_Salem US/Central",
  "-300 - America/Atikokan,Bogota,Cancun,Cayman,Eirunepe,Guayaquil,Jamaica,Lima,Panama,Rio_Branco",
  "-300 CU America/Havana",
  "-300 US America/Detroit,Grand_Turk,Iqaluit,Nassau,New_York,Port-au-Prince,Toronto America/Indiana/Indianapolis," +
    "Marengo,Petersburg,Vevay,Vincennes,Winamac America/Kentucky/Louisville,Monticello US/Eastern",
  "-240 - America/Anguilla,Antigua,Aruba,Barbados,Blanc-Sablon,Boa_Vista,Campo_Grande,Caracas,Cuiaba,Curacao," +
    "Dominica,Grenada,Guadeloupe,Guyana,Kralendijk,La_Paz,Lower_Princes,Manaus,Marigot,Martinique,Montserrat," +
    "Port_of_Spain,Porto_Velho,Puerto_Rico,Santo_Domingo,St_Barthelemy,St_Kitts,St_Lucia,St_Thomas,St_Vincent,Tortola",
  "-240 CL America/Santiago",
  "-240 US America/Glace_Bay,Goose_Bay,Halifax,Moncton,Thule Atlantic/Bermuda",
  "-210 US America/St_Johns",
  "-180 - America/Araguaina,Asuncion,Bahia,Belem,Buenos_Aires,Cayenne,Coyhaique,Fortaleza,Maceio,Montevideo," +
    "Paramaribo,Punta_Arenas,Recife,Santarem,Sao_Paulo America/Argentina/Buenos_Aires,Catamarca,Cordoba,Jujuy," +
    "La_Rioja,Mendoza,Rio_Gallegos,Salta,San_Juan,San_Luis,Tucuman,Ushuaia Antarctica/Palmer,Rothera Atlantic/Stanley",
  "-180 US America/Miquelon",
  "-120 - America/Noronha Atlantic/South_Georgia",
  "-120 EU America/Godthab,Nuuk,Scoresbysund",
  "-60 - Atlantic/Cape_Verde",
  "-60 EU Atlantic/Azores",
  "0 - Africa/Abidjan,Accra,Bamako,Banjul,Bissau,Conakry,Dakar,Freetown,Lome,Monrovia,Nouakchott,Ouagadougou," +
    "Sao_Tome America/Danmarkshavn Atlantic/Reykjavik,St_Helena GMT,UTC",
  "0 EU Atlantic/Canary,Faroe,Madeira Europe/Dublin,Guernsey,Isle_of_Man,Jersey,Lisbon,London",
  "0 TR Antarctica/Troll",
  "60 - Africa/Algiers,Bangui,Brazzaville,Douala,Kinshasa,Lagos,Libreville,Luanda,Malabo,Ndjamena,Niamey," +
    "Porto-Novo,Tunis",
  "60 EU Africa/Ceuta Arctic/Longyearbyen Europe/Amsterdam,Andorra,Belgrade,Berlin,Bratislava,Brussels,Budapest," +
    "Busingen,Copenhagen,Gibraltar,Ljubljana,Luxembourg,Madrid,Malta,Monaco,Oslo,Paris,Podgorica,Prague,Rome," +
    "San_Marino,Sarajevo,Skopje,Stockholm,Tirane,Vaduz,Vatican,Vienna,Warsaw,Zagreb,Zurich",
  "60 MA Africa/Casablanca,El_Aaiun",
  "120 - Africa/Blantyre,Bujumbura,Gaborone,Harare,Johannesburg,Juba,Khartoum,Kigali,Lubumbashi,Lusaka,Maputo," +
    "Maseru,Mbabane,Tripoli,Windhoek Europe/Kaliningrad",
  "120 EG Africa/Cairo",
  "120 EU Asia/Famagusta,Nicosia Europe/Athens,Bucharest,Chisinau,Helsinki,Kiev,Kyiv,Mariehamn,Riga,Sofia,Tallinn," +
    "Vilnius",
  "120 IL Asia/Jerusalem",
  "120 LB Asia/Beirut",
  "180 - Africa/Addis_Ababa,Asmara,Dar_es_Salaam,Djibouti,Kampala,Mogadishu,Nairobi Antarctica/Syowa Asia/Aden," +
    "Amman,Baghdad,Bahrain,Damascus,Istanbul,Kuwait,Qatar,Riyadh Europe/Istanbul,Kirov,Minsk,Moscow,Simferopol," +
    "Volgograd Indian/Antananarivo,Comoro,Mayotte",
  "210 - Asia/Tehran",
  "240 - Asia/Baku,Dubai,Muscat,Tbilisi,Yerevan Europe/Astrakhan,Samara,Saratov,Ulyanovsk Indian/Mahe,Mauritius," +
    "Reunion",
  "270 - Asia/Kabul",
  "300 - Antarctica/Mawson,Vostok Asia/Almaty,Aqtau,Aqtobe,Ashgabat,Atyrau,Dushanbe,Karachi,Oral,Qostanay," +
    "Qyzylorda,Samarkand,Tashkent,Yekaterinburg Indian/Kerguelen,Maldives",
  "330 - Asia/Calcutta,Colombo,Kolkata",
  "345 - Asia/Kathmandu,Katmandu",
  "360 - Asia/Bishkek,Dhaka,Omsk,Thimphu,Urumqi Indian/Chagos",
  "390 - Asia/Rangoon,Yangon Indian/Cocos",
  "420 - Antarctica/Davis Asia/Bangkok,Barnaul,Ho_Chi_Minh,Hovd,Jakarta,Krasnoyarsk,Novokuznetsk,Novosibirsk," +
    "Phnom_Penh,Pontianak,Saigon,Tomsk,Vientiane Indian/Christmas",
  "480 - Antarctica/Casey Asia/Brunei,Hong_Kong,Irkutsk,Kuala_Lumpur,Kuching,Macau,Makassar,Manila,Shanghai," +
    "Singapore,Taipei,Ulaanbaatar Australia/Perth",
  "525 - Australia/Eucla",
  "540 - Asia/Chita,Dili,Jayapura,Khandyga,Pyongyang,Seoul,Tokyo,Yakutsk Pacific/Palau",
  "570 - Australia/Darwin",
  "570 AU Australia/Adelaide,Broken_Hill",
  "600 - Antarctica/DumontDUrville Asia/Ust-Nera,Vladivostok Australia/Brisbane,Lindeman Pacific/Chuuk,Guam," +
    "Port_Moresby,Saipan",
  "600 AU Antarctica/Macquarie Australia/Hobart,Melbourne,Sydney",
  "630 LH Australia/Lord_Howe",
  "660 - Asia/Magadan,Sakhalin,Srednekolymsk Pacific/Bougainville,Efate,Guadalcanal,Kosrae,Noumea,Pohnpei",
  "660 AU Pacific/Norfolk",
  "720 - Asia/Anadyr,Kamchatka Pacific/Fiji,Funafuti,Kwajalein,Majuro,Nauru,Tarawa,Wake,Wallis",
  "720 NZ Antarctica/McMurdo Pacific/Auckland",
  "765 NZ Pacific/Chatham",
  "780 - Pacific/Apia,Fakaofo,Kanton,Tongatapu",
  "840 - Pacific/Kiritimati",
];

const TABLE = new Map(
  ZONES.flatMap((line) => {
    const [standard, rule, ...regions] = line.split(" ");
    return regions.flatMap((region) => {
      const slash = region.lastIndexOf("/") + 1;
      const names = region.slice(slash).split(",");
      return names.map((name) => [region.slice(0, slash) + name, { standard: Number(standard), rule }]);
    });
  }),
);

export default function zones(input) {
  const { time, from, to = [], list } = input ?? {};
  if (typeof list === "string")
    return [...TABLE.keys()].filter((name) => name.toLowerCase().includes(list.toLowerCase())).sort();
  if (typeof time !== "string") {
    throw new Error('expected { "time": "2026-03-29T14:30", "from": "Europe/Berlin", "to": ["Asia/Tokyo"] }');
  }
  const targets = (Array.isArray(to) ? to : [to]).map(find);
  if (targets.length > 50) throw new Error("to: expected at most 50 zones");
  const { minute, seconds, offset } = parse(time);
  const source = offset === undefined ? find(from ?? missing()) : find(offset);
  const { utc, note } = toUtc(minute, source);
  const shown = (zone) => show(utc, seconds, zone);
  const result = { utc: `${format(utc, seconds)}Z`, from: shown(source), to: targets.map(shown) };
  return note === undefined ? result : { ...result, note };
}

function missing() {
  throw new Error(
    'from: expected the zone of the time, such as "Europe/Berlin", or an offset in the time, such as "Z"',
  );
}

// Minutes since 1970

const dayNumber = (year, month, day) => Math.floor(Date.UTC(year, month - 1, day) / 86_400_000);
const yearOf = (minute) => new Date(minute * 60_000).getUTCFullYear();

function parse(text) {
  const match = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?\s*(Z|[+-]\d\d:?\d\d)?$/i.exec(
    text.trim(),
  );
  const wrong = () => new Error(`time: expected one such as "2026-03-29T14:30", got "${text.slice(0, 40)}"`);
  if (!match) throw wrong();
  const [year, month, day, hours, minutes, seconds = 0] = match.slice(1, 7).map((part) => part && Number(part));
  const date = new Date(Date.UTC(year, month - 1, day));
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hours > 23 || minutes > 59 || seconds > 59)
    throw wrong();
  return { minute: dayNumber(year, month, day) * DAY + hours * 60 + minutes, seconds, offset: match[7] };
}

const pad = (number) => String(number).padStart(2, "0");
const format = (minute, seconds) => `${new Date(minute * 60_000).toISOString().slice(0, 17)}${pad(seconds)}`;
const signed = (minutes) =>
  `${minutes < 0 ? "-" : "+"}${pad(Math.floor(Math.abs(minutes) / 60))}:${pad(Math.abs(minutes) % 60)}`;

function show(utc, seconds, zone) {
  const offset = offsetAt(zone, utc);
  const local = utc + offset;
  const weekday = WEEKDAYS[(((Math.floor(local / DAY) + 4) % 7) + 7) % 7];
  const summerTime = offset > zone.standard;
  return { zone: zone.name, time: format(local, seconds), offset: signed(offset), weekday, summerTime };
}

// Zones

/** By its name, an offset, or the last part of its name where only one zone has it. */
function find(given) {
  const text = String(given).trim();
  const offset = /^(?:UTC|GMT)?([+-])(\d{1,2}):?(\d\d)?$/i.exec(text);
  if (offset) {
    const minutes = Number(offset[2]) * 60 + Number(offset[3] ?? 0);
    if (minutes > 18 * 60) throw new Error(`there is no offset "${text}"`);
    return { name: text, standard: offset[1] === "-" ? -minutes : minutes, rule: "-" };
  }
  if (/^z$/i.test(text)) return { name: "UTC", standard: 0, rule: "-" };
  const lower = text.toLowerCase().replace(/ /g, "_");
  const names = [...TABLE.keys()];
  const exact = names.find((name) => name.toLowerCase() === lower);
  const cities = names.filter((name) => name.toLowerCase().endsWith(`/${lower}`));
  // A city that two regions have under old and new names is one.
  const isOne = new Set(cities.map((city) => Object.values(TABLE.get(city)).join())).size === 1;
  const name = exact ?? (isOne ? cities[0] : undefined);
  if (name !== undefined) return { name, ...TABLE.get(name) };
  throw new Error(
    `there is no zone "${text.slice(0, 60)}"; expected a name such as "Europe/Berlin", or an offset such as "+02:00"`,
  );
}

/** Minutes ahead of UTC at this minute of UTC. */
function offsetAt({ name, standard, rule }, utc) {
  if (rule === "-") return standard;
  const year = yearOf(utc + standard);
  if (year < FIRST_YEAR || year > LAST_YEAR) {
    throw new Error(
      `the summer time of ${name} is known for ${FIRST_YEAR} to ${LAST_YEAR}: give an offset such as "+02:00"`,
    );
  }
  if (rule === "MA") return standard - (isRamadan(utc) ? 60 : 0);
  const { utc: isUtc, begins, ends, ahead } = RULES[rule];
  const minuteOf = ([month, weekday, day, minute]) => {
    const first = dayNumber(year, month, day);
    return (first + ((((weekday - first - 4) % 7) + 7) % 7)) * DAY + minute - (isUtc ? 0 : standard);
  };
  const [begin, end] = [minuteOf(begins), minuteOf(ends)];
  const isSummer = begin < end ? utc >= begin && utc < end : utc >= begin || utc < end;
  return standard + (isSummer ? ahead : 0);
}

function isRamadan(utc) {
  const changes = MOROCCO.split(" ").map((day) => Date.parse(day) / 60_000 + 120);
  return changes.filter((change) => change <= utc).length % 2 === 1;
}

/** A time that comes twice is taken the first time; one that is left out, as if the clock had not been changed yet. */
function toUtc(local, zone) {
  const candidates = [...new Set([-1, 1].map((days) => offsetAt(zone, local - zone.standard + days * DAY)))];
  const fitting = candidates.map((offset) => local - offset).filter((utc) => offsetAt(zone, utc) === local - utc);
  fitting.sort((a, b) => a - b);
  const [first] = fitting;
  if (first === undefined) {
    const before = offsetAt(zone, local - zone.standard - DAY);
    return { utc: local - before, note: `${zone.name} leaves this time out: the clock is put forward then` };
  }
  return fitting.length > 1
    ? { utc: first, note: `in ${zone.name} this time comes twice: the first is meant` }
    : { utc: first };
}
