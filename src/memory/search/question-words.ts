/**
 * Words of questions that are in every text, and say nothing of what is looked for: articles, pronouns, prepositions,
 * conjunctions, auxiliary and modal verbs, question words.
 */
const LISTS = {
  en:
    "a about after all also am an and any are aren't as at be because been before being between both but by can cannot could did do " +
    "does doing don't for from had has have having he her here hers him his how i if in into is it its just let me mine more most " +
    "must my no not of on one or other our ours out over own shall she should so some such than that the their them then there " +
    "these they this those through to too under until up us very was we were what when where which while who whom whose why will " +
    "with would yet you your yours",
  de:
    "aber alle allem allen aller alles als also am an ander andere anderen anderer anderes auch auf aus bei beim bin bis bist da damit " +
    "dann das dass dein deine deinem deinen deiner dem den denen denn der deren dessen des dich die dies diese diesem diesen dieser " +
    "dieses dir doch dort du durch dürfen darf ein eine einem einen einer eines er es etwas euch euer eure für gegen gibt hab habe haben " +
    "habt hast hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder " +
    "jedes jetzt kann kannst kein keine keinem keinen keiner können könnt könnte machen mal man mehr mein meine meinem meinen meiner " +
    "meist meisten mich mir mit muss müssen musst nach nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit " +
    "selbst sich sie sind so soll sollen sollte sollten sonst über um und uns unser unsere unserem unseren unserer unter viel viele vielen " +
    "vom von vor wann war waren warst warum was weg wegen weil welche welchem welchen welcher welches wem wen wenn wer werde werden " +
    "weshalb wessen wie wieder wieso wie will willst wir wird wirst wo wofür woher wohin wollen womit worin worüber wurde wurden während " +
    "würde würden zu zum zur zwischen",
  es:
    "a al algo algún alguna algunas alguno algunos ante antes aquel aquella como cómo con contra cual cuál cuales cuáles cuando cuándo " +
    "cuanta cuánta cuantas cuántas cuanto cuánto cuantos cuántos de debe deben debemos debo del desde donde dónde durante e el él ella " +
    "ellas ellos en entre era eran eres es esa esas ese eso esos esta está están estaba estamos estar estas este esto estos estoy fue " +
    "fueron ha hace hacer hacemos hago han has hasta hay haya he hemos la las le les lo los más me mi mí mis mucho muchos muy nada ni no " +
    "nos nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para pero poco podemos poder por porque puede pueden puedo " +
    "qué que queremos quién quien quiénes quiere quiero se sea ser si sí sido sin sobre sois somos son soy su sus también te tenemos " +
    "tener tengo ti tiene tienen todo todos tu tú tus u un una unas uno unos va vamos van voy y ya yo",
  fr:
    "à ai ainsi alors après as au aucun aussi autre autres aux avait avant avec avez avons c ce cela celle celui ces cet cette chez " +
    "combien comme comment d dans de depuis des doit doivent donc dont du elle elles en entre es est et étaient était été être eu eux " +
    "fait faire font il ils j je l la là le les leur leurs lui m ma mais me même mes moi mon n ne ni nos notre nous on ont où ou par pas " +
    "pendant peut peuvent peux plus pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si son sont " +
    "sous suis sur t ta te tes toi ton tous tout très tu un une va vais vers vos votre vous y",
};

const words = Object.values(LISTS).map((list) => new Set(list.split(" ")));
const [english = new Set(), ...others] = words;

export const isQuestionWord = (word: string): boolean => words.some((list) => list.has(word));

/** Whether such words show that a text is English; `all` in lower case. */
export function hasEnglishWords(all: readonly string[]): boolean {
  const count = (list: ReadonlySet<string>) => all.filter((word) => list.has(word)).length;
  return others.every((list) => count(english) > count(list));
}

/** The same of scripts that put no spaces between words: what stands between two of them is looked for. */
export const QUESTION_WORDS_IN_RUNS =
  /什么|怎么|怎样|为什么|哪里|哪儿|哪个|哪些|哪天|哪位|哪种|哪|多少|几个|几点|多久|谁|我们|你们|他们|她们|我|你|他|她|它|的|了|吗|呢|吧|是|在|有|要|会|能|可以|应该|和|跟|把|被|给|对|就|也|都|还|这|那|个|ですか|でしたか|ますか|ましたか|です|ます|ました|ません|でしょう|ください|している|していた|している|して|された|される|れば|たら|いる|ある|どこ|いつ|だれ|誰|何|なに|なん|どう|どの|どれ|どんな|いくつ|いくら|どのくらい|なぜ|私|わたし|うち|の|は|が|を|に|で|と|も|へ|や|か|から|まで|より/g;
