"""Deletion requests in other languages: the imperative, the polite question, the wish.

Each language gives the shapes of a request with the object in a group ``obj``. The shapes start at
the beginning of a sentence, so that reports ("ich habe ... vergessen") and negated imperatives
("no olvides ...") don't fit them. Texts are compared in lower case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dellm.requests.reading import MASK, Sentence
from dellm.requests.request import Target
from dellm.requests.targets import VALUE

_SHAPES: dict[str, tuple[str, ...]] = {
    "de": (
        r"(?:vergiss|vergesst|vergessen sie|lösche?|löscht|löschen sie|entferne?|entfernen sie|tilge|streiche?|radiere?|lass uns vergessen)(?: bitte| doch| mal| auch| sofort| jetzt| einfach)*,? (?P<obj>.+)",
        r"(?:kannst|könntest|würdest|können|könnten|würden|kann|magst) (?:du|sie|ich|man)(?: bitte| mal| auch)* (?P<obj>.+?) (?:bitte )?(?:wieder )?(?:vergessen|löschen|entfernen|tilgen|streichen)\b.*",
        r"ich (?:möchte|will|wünsche|hätte gern),? ?dass (?:du|sie) (?P<obj>.+?) (?:vergisst|löschst|entfernst|vergessen|löschen|entfernen)\b.*",
        r"(?P<obj>(?:meine?n?|die|den|das|alles|unsere?n?)\b.+?) (?:bitte )?(?:vergessen|löschen|entfernen)(?: bitte)?\W*\Z",
        r"(?P<obj>(?:meine?n?|die|den|das|alles|unsere?n?)\b.+?) (?:kannst|könntest|sollst|darfst) du (?:bitte )?(?:jetzt |ruhig |gern |wieder )*(?:vergessen|löschen|entfernen)\b.*",
        r"(?:merk|merke) dir (?P<obj>.+?) (?:bitte )?nicht(?: mehr| länger)?\b.*",
    ),
    "es": (
        r"(?:olvida|olvide|olvidá|olvídate de|olvidate de|olvídese de|borra|bórrame|elimíname|borre|borrá|elimina|elimine|eliminá|suprime|suprima|quita)(?:,? por favor,?)? (?P<obj>.+)",
        r"(?:¿ ?)?(?:me )?(?:puedes|podrías|puede|podría|podés|quieres) (?:por favor )?(?:olvidar(?:te de)?|borrar|eliminar|suprimir|quitar) (?P<obj>.+)",
        r"(?:ya )?no (?:recuerdes|guardes|retengas) (?:más )?(?P<obj>mi .+|que .+|nada .+)",
        r"(?:quiero|quisiera|necesito|me gustaría|te pido) que (?:olvides?|borres?|elimines?|olvidaras|borraras|eliminaras|te olvides de) (?P<obj>.+)",
    ),
    "fr": (
        r"(?:oublie|oubliez|supprime|supprimez|efface|effacez|retirez|enlève|enlevez)(?:,? (?:s'il te plaît|s'il vous plaît|stp|svp),?)? (?P<obj>.+)",
        r"(?:peux-tu|pouvez-vous|pourrais-tu|pourriez-vous|tu peux|tu pourrais|vous pouvez|veuillez|merci d(?:e |')|est-ce que tu peux|j'aimerais te demander d(?:e |'))(?: s'il te plaît| stp)? ?(?:oublier|supprimer|effacer|retirer|enlever) (?P<obj>.+)",
        r"(?:ne )?(?:garde|retiens|conserve|mémorise) (?:pas|plus) (?P<obj>(?:mon|ma|mes|que|qu'|le|la) ?.+)",
        r"(?:je (?:veux|voudrais|souhaite|préfère)|j'aimerais) que (?:tu|vous) (?:oublies|oubliez|oubliiez|supprimes|supprimiez|effaces|effaciez) (?P<obj>.+)",
    ),
    "it": (
        r"(?:dimentica|dimenticati di|dimentichi|cancella|elimina|rimuovi|rimuova|scordati(?: di)?)(?:,? per favore,?)? (?P<obj>.+)",
        r"(?:puoi|potresti|può|potrebbe|puoi per favore)(?: per favore)? (?:dimenticare|cancellare|eliminare|rimuovere|scordare) (?P<obj>.+)",
        r"(?:voglio|vorrei) che (?:tu )?(?:dimentichi|dimenticassi|cancelli|cancellassi|elimini) (?P<obj>.+)",
    ),
    "pt": (
        r"(?:esqueça|esqueca|esquece|esqueça-se de|apague|apaga|exclua|exclui|elimine|remova|deleta|delete(?= (?:o|a|os|as|meu|minha|tudo)\b))(?:,? por favor,?)? (?P<obj>.+)",
        r"(?:você |tu )?(?:pode|poderia|podes|podias|poderias|consegue) (?:por favor )?(?:esquecer|apagar|excluir|deletar|remover|eliminar) (?P<obj>.+)",
        r"(?:quero|queria|gostaria) que (?:você |tu )?(?:esqueça|esqueças|apague|apagues|esquecesse|apagasse|exclua) (?P<obj>.+)",
    ),
    "nl": (
        r"(?:vergeet|verwijder|wis|schrap)(?: alsjeblieft| alstublieft| maar| even)*,? (?P<obj>.+)",
        r"(?:kun|kan|kunt|wil|wilt|zou|zou je) (?:je|jij|u)(?: alsjeblieft| even)* (?P<obj>.+?) (?:willen |kunnen )?(?:vergeten|verwijderen|wissen|schrappen)\b.*",
        r"ik wil(?: graag)? dat (?:je|u) (?P<obj>.+?) (?:vergeet|verwijdert|wist)\b.*",
    ),
    "sv": (r"(?:glöm(?: bort)?|radera|ta bort|stryk)(?: snälla)? (?P<obj>.+)", r"(?:kan|skulle) du (?:snälla )?(?:kunna )?(?:glömma|radera|ta bort) (?P<obj>.+)"),
    "da": (r"(?:glem|slet|fjern)(?: venligst)? (?P<obj>.+)", r"(?:kan|vil) du (?:venligst )?(?:glemme|slette|fjerne) (?P<obj>.+)"),
    "pl": (
        r"(?:zapomnij|zapomnijcie|usuń|skasuj|wymaż|wykasuj|usun)(?:,? proszę,?)?,? (?P<obj>.+)",
        r"(?:czy )?(?:możesz|mógłbyś|mogłabyś|mogłbyś|może pan|może pani)(?: proszę)? (?:zapomnieć|usunąć|skasować|wymazać),? (?P<obj>.+)",
        r"(?:chcę|chciałbym|chciałabym),? żebyś (?:zapomniał|zapomniała|usunął|usunęła),? (?P<obj>.+)",
    ),
    "cs": (r"(?:zapomeň|zapomeňte|smaž|smažte|vymaž|odstraň|odstraňte)(?: prosím)?,? (?P<obj>.+)",),
    "ru": (
        r"(?:забудь|забудьте|удали|удалите|сотри|сотрите|убери|уберите|очисти)(?:,? пожалуйста,?)?,? (?P<obj>.+)",
        r"(?:ты )?(?:можешь|можете|мог бы ты|могла бы ты|не мог бы ты|не могли бы вы|могли бы вы)(?: ты| вы)?(?:,? пожалуйста,?)? (?:забыть|удалить|стереть|убрать),? (?P<obj>.+)",
        r"(?:я )?(?:хочу|прошу|хотел бы|хотела бы),? чтобы (?:ты|вы) (?:забыла?|забыли|удалила?|удалили|стёрла?|стерла?),? (?P<obj>.+)",
    ),
    "uk": (r"(?:забудь|забудьте|видали|видаліть|зітри|прибери)(?:,? будь ласка,?)?,? (?P<obj>.+)",),
    "tr": (
        r"(?P<obj>.+?) (?:unut|unutun|sil|silin|siler misin|siler misiniz|unutur musun|silebilir misin|silebilir misiniz|unutabilir misin|unutmanı istiyorum|silmeni istiyorum)(?: lütfen)?\W*\Z",
        r"unut(?: ki)? (?P<obj>.+)",
    ),
    "id": (r"(?:tolong |mohon )?(?:lupakan|hapus|hapuskan) (?P<obj>.+)",),
    "vi": (r"(?:hãy |xin |làm ơn )?(?:quên|xóa|xoá) (?P<obj>.+)",),
    "ar": (
        r"(?:هل يمكنك |هل تستطيع |أرجو |أريدك |أريد )?(?:أن |ان )?(?:انس|انسَ|انسى|إنسى|احذف|امسح|أزل|ازل|امحُ|امح|انسي|احذفي|تنسى|تحذف|تمسح|نسيان|حذف|مسح) (?P<obj>.+)",
    ),
    "he": (r"(?:בבקשה )?(?:תשכח|תשכחי|שכח|מחק|תמחק|תמחקי|הסר) (?P<obj>.+)",),
    "hi": (
        r"(?:भूल जाओ|भूल जाइए|भूल जाएं|भूल जाएँ|भूल जा|मिटा दो) कि (?P<obj>.+)",
        r"(?P<obj>.+?) (?:को )?(?:भूल जाओ|भूल जाइए|भूल जाएं|भूल जाएँ|हटा दो|हटा दें|हटा दीजिए|हटाओ|हटाएं|हटाएँ|हटाइए|मिटा दो|मिटा दें|मिटाओ|मिटा दीजिए|डिलीट करो|डिलीट कर दो|डिलीट करें|डिलीट कर दें|हटा सकते हैं|हटा सकते हो)\W*\Z",
    ),
    "zh": (
        r"(?:(?:请|請|麻烦|麻煩|拜托|你|帮我|幫我|给我|现在|可以|能|能不能|可不可以|能否|我要你|我想让你|我希望你|我想要你|,|,)\s*)*(?:忘记|忘掉|忘了|忘記|删除|删掉|删去|刪除|刪掉|清除|清空|抹去|抹掉|移除|擦除|消除)(?:掉)?(?:关于|關於|有关)?(?P<obj>.+?)(?:吧|吗|嗎|好吗|可以吗)?\W*\Z",
        r"(?:(?:请|請|麻烦|你|帮我|能|可以|能不能|可不可以|能否)\s*)*(?:把|将|將)(?P<obj>.+?)(?:都|全部|给我|从记忆中|從記憶中|从你的记忆里|从你的记忆中)*(?:忘记|忘掉|忘了|忘記|删除|删掉|删了|刪除|刪掉|清除|清空|抹去|抹掉|移除|擦除)(?:掉|吧|了|吗|好吗)*\W*\Z",
    ),
    "ja": (
        r"(?P<obj>.+?)(?:を|は|も|のこと(?:を|は)?|について(?:は)?|に関する情報を)?(?:全部|すべて|全て|もう|完全に)?(?:忘れて|忘れなさい|削除して|消して|消去して|抹消して|取り除いて|除去して|削除を)(?:ください|下さい|くれ|くれる|ほしい(?:です)?|欲しい(?:です)?|もらえますか|もらえる|くれますか|くれませんか|いただけますか|頂戴|ちょうだい|お願いします|お願い|ね|よ)*\W*\Z",
        r"(?P<obj>.+?)(?:を|は|のことを)(?:削除|消去|忘却)(?:せよ|しろ|お願いします)?\W*\Z",
    ),
    "ko": (
        r"(?P<obj>.+?)(?:을|를|은|는)?\s?(?:다|모두|전부|좀|제발)?\s?(?:잊어|잊|삭제해|지워|제거해|없애|삭제 부탁|잊어버려|지워버려)\s?(?:줘|줘요|주세요|주십시오|줄래|줄래요|주실래요|주시겠어요|줄 수 있어|주실 수 있나요|드려요|드립니다|라|요)?\W*\Z",
    ),
}  # fmt: skip
_PLEASE = (
    r"(?:(?:bitte|hallo|hey|ok|also|por favor|oye|hola|s'il te plaît|s'il vous plaît|stp|svp|per favore|ciao|alsjeblieft|alstublieft"
    r"|proszę|пожалуйста|привет|будь ласка|lütfen|कृपया|प्लीज़?|من فضلك|رجاءً|رجاء|لو سمحت|どうか|すみません|제발|부디|请|snälla|prosím|tolong|jetzt|und|und jetzt|y|et|e|i|а|и)[\s,،、!.]+)*"
)
_LANGUAGES = {
    code: tuple(re.compile(rf"[^\w{MASK}]*{_PLEASE}{shape}", re.DOTALL) for shape in shapes)
    for code, shapes in _SHAPES.items()
}
_NEGATED = re.compile(
    r"(?:bitte )?(?:nicht|nie|niemals|niet|nooit|inte|ikke|不要|别|não|no|pas|jamais|mai|non|nie|не|never|to |not)\b"
    r"|(?:de|d'|di|да)\s+(?:me |te |mi |ti )?\w+(?:er|ir|re|ar)\b|(?:zu|te) \w+en\b|带|拿|关门|做|吃|买"
)
_TASK = re.compile(
    r"\b(?:licht|luce|datei|dateien|ordner|termin|termine|kalender|liste|einkaufsliste|wecker|zeile|spalte|absatz|wort|bild|foto|fotos|hintergrund|fleck|e-?mails?|app|tabelle|funktion|code"
    r"|archivo|archivos|carpeta|cita|luz|luces|calendario|lista|alarma|línea|columna|párrafo|palabra|imagen|mancha|correos?|tabla|función|código|recordatorio"
    r"|lumière|fichier|fichiers|dossier|rendez-vous|calendrier|agenda|alarme|ligne|colonne|paragraphe|mot|tache|réveil|tableau|fonction|rappel|mails"
    r"|il file|i file|file|cartella|appuntamento|sveglia|riga|colonna|paragrafo|parola|immagine|macchia|promemoria|tabella|codice"
    r"|arquivo|arquivos|ficheiro|pasta|compromisso|luz|luzes|tv|alarme|linha|coluna|parágrafo|palavra|imagem|mancha|lembrete|tabela"
    r"|bestand|bestanden|map|afspraak|agenda|lijst|wekker|regel|kolom|alinea|woord|afbeelding|vlek|herinnering|boodschappenlijst"
    r"|plik|pliki|folder|spotkanie|kalendarza|listy|listę|budzik|wiersz|akapit|słowo|zdjęcie|przypomnienie"
    r"|файл|файлы|папку|встречу|календаря|список|списка|будильник|строку|абзац|слово|фото|напоминание|письма"
    r"|dosyayı|dosya|klasörü|takvim\w*|listeyi|alarmı|satırı|resmi|fotoğrafı|hatırlatıcıyı"
    r"|الملف|ملف|المنبه|القائمة|التقويم|الصورة|फ़ाइल|फाइल|सूची|अलार्म|तस्वीर|fil|filen|lista[n]?|kalender\w*)\b"
    r"|ファイル|フォルダ|予定|カレンダー|リスト|アラーム|行を|画像|写真|リマインダー|文件|文件夹|日历|列表|闹钟|提醒|图片|照片|行程|清单|购物车|垃圾|缓存|软件|電気|テレビ|ライト|照明|火を|音を|エアコン|파일|폴더|일정|캘린더|목록|알람|사진|할 일"
)
_ALL_WORD = r"(?:alles?|todos?|todas?|tout|toutes?|tous|tutto|tutti|tutte|tudo|wszystk\w+|вс[её]|усе|її все|her ?şey\w*|bildiğin her ?şey\w*|すべて|全て|全部|何もかも|一切|所有|모든 ?(?:것|걸|정보|기억)?|모두|전부|다|كل شيء|كل|सब कुछ|सब|allt|alt|všechno|semua|tất cả|הכל)"
_ABOUT_ME = re.compile(
    r"\b(?:über mich|von mir|sobre mí|de mí|acerca de mí|sur moi|de moi|à mon sujet|su di me|di me|sobre mim|de mim|over mij|van mij|om mig|o mnie|обо мне|про меня|hakkımda\w*|benim hakkımda|meine daten|mes données|mis datos|miei dati|meus dados|mijn gegevens|moje dane|мои данные|tüm verilerimi|بياناتي|मेरा सारा डेटा|hafızan\w*|عني|عنّي|मेरे बारे में|o mně|tentang saya|về tôi)"
    r"|私について|私のこと|僕について|僕のこと|俺のこと|私のデータ|我的所有|我所有的|내 모든|关于我|關於我|我的一切|我的所有(?:信息|资料|数据|记忆)|对我的|나에 대(?:해|한)|저에 대(?:해|한)|내 모든"
)
_NEWEST = re.compile(
    r"\b(?:letzten?|letztes|vorige|gerade|eben|últim[oa]s?|acabo de|recién|derni(?:er|ère|ers|ères)|je viens de|viens de|ultim[oaie]|appena|laatste|net gezegd|zojuist|zonet|ostatni\w*|właśnie|przed chwilą|последн\w+|только что|son (?:mesaj|söyle)\w*|az önce|demin|آخر|للتو|senaste|nyss|poslední|terakhir|vừa)\b|आख़िरी|आखिरी|अभी|最後|さっき|今言|直前|最后|刚才|刚刚|上一|마지막|방금"
)
_THREAD = re.compile(
    r"\b(?:dieses? (?:gespräch|unterhaltung|chat|sitzung)|diesen chat|est[ea] (?:conversación|chat|sesión)|cette (?:conversation|discussion|session)|ce chat|questa (?:conversazione|chat|sessione)|est[ae] (?:conversa|chat|sessão)|dit gesprek|deze (?:chat|sessie)|tę (?:rozmowę|sesję)|ten czat|этот (?:разговор|чат|диалог)|эту беседу|bu (?:sohbet|konuşma)\w*|هذه المحادثة|den här (?:chatten|konversationen))|この(?:会話|チャット|スレッド)|这(?:个|次|段)(?:对话|聊天|会话|交谈)|這(?:個|次|段)(?:對話|聊天)|이 (?:대화|채팅)|(?:यह|इस) (?:बातचीत|चैट)"
)
_PRONOUN = re.compile(
    r"(?:das|es|dies|lo|eso|esto|ça|cela|ceci|lo|questo|quello|isso|isto|dat|dit|het|to|tamto|это|то|bunu|şunu|onu|それ|これ|あれ|这个|那个|它|这|那|그것|그거|이것|이거|هذا|ذلك|यह|वह|इसे|उसे|det)\W*\Z"
)
_THAT = re.compile(
    r"(?:,\s*)?(?:dass|daß|que|qu(?=')|che|dat|że|iż|что|що|att|at|že|bahwa|rằng|أنني|أنني|أني|أنّي|أن|أنّ|ki|कि)(?:\s+|')"
)
_MESSAGE_NUMBER = re.compile(
    r"(?:nachricht(?:en)?|mensajes?|messages?|messaggi\w?|mensagens?|mensagem|bericht(?:en)?|wiadomoś\w+|сообщени\w+|mesaj\w*|メッセージ|消息|메시지|رسالة|الرسالة|संदेश|meddelande\w*)\s*(?:nr\.?|no\.?|n°|número|numéro|numero|nummer|#|№|номер|番号)?\s*(\d{1,12})|(?:第)(\d{1,12})(?:条|條)"
)
_END = re.compile(
    r"[\s,،、]*(?:bitte|por favor|s'il te plaît|s'il vous plaît|stp|svp|per favore|alsjeblieft|alstublieft|proszę|пожалуйста|lütfen|من فضلك|رجاءً|لو سمحت|कृपया|snälla|prosím|tack"
    r"|aus deinem gedächtnis|aus dem gedächtnis|aus deinem speicher|de tu memoria|de la memoria|de ta mémoire|de la mémoire|dalla (?:tua )?memoria|da (?:sua|tua) memória|da memória|uit je geheugen|z pamięci|из (?:своей |твоей )?памяти|hafızandan|من ذاكرتك|अपनी याददाश्त से|ur minnet|hele|gitsin|lại|di|吧)[\s.!?。！？؟]*\Z"
)
_OTHER_CLAUSE = re.compile(
    r"[;；.!?。！？؟।]|,\s(?=(?:aber|pero|mais|ma|mas|maar|ale|но|behalte|conserva|garde|tieni|mantenha|houd)\b)|\s(?:aber|pero|maar|но|ale)\s"
)
_KANA = re.compile(r"[\u3041-\u30ff]")
_GENERIC = re.compile(
    r"(?:dinge|sachen|etwas|was|cosas|algo|choses|quelque chose|des choses|cose|qualcosa|coisas|dingen|iets|rzeczy|coś|вещи|что-то|bir şey(?:ler)?i?|saker)\W*(?:aus .*|de .*|da .*|из .*)?\Z|何か|物事|东西|事情|뭔가|أشياء|चीज़ें"
)
_ASKS_HOW = re.compile(r"怎么|怎麼|如何|为什么|多久|了\W*\Z|どう|なぜ|어떻게|왜|कैसे|क्यों")
_WRAPPER = re.compile(
    r"(?:alles|todo|tout|toutes les informations|les informations|l'information|tutto|tutte le informazioni|le informazioni|tudo|wszystko|informacje|всё|все|информацию|alle informatie|toda (?:la|a) informa(?:ción|ção)|la información|as informações|die information(?:en)?|alle informationen|die tatsache|le fait|el hecho de|il fatto|o fato de|de informatie|lo|ce|quello|dat|o)"
    r"(?:,? (?:was|que|che|ce que|wat|co|что) (?:du|sabes|te (?:dije|conté)|je t'ai dit|tu sais|ti ho detto|sai|você sabe|ich dir|je|weet|wiesz|ты|знаешь|te disse|lhe disse)(?: \w+){0,2}?)?"
    r"(?: relacionado con| à propos)?,? (?:über|zu|sobre|acerca de|sur|concernant|su|riguardo a|over|o|об?|про|de|que|dass|che|dat|von) "
)
_NAME = re.compile(r"[A-ZÀ-ÖА-ЯЁ][\w'-]+(?: [A-ZÀ-ÖА-ЯЁ][\w'-]+){0,3}")
_CLITIC = re.compile(
    r"[^\w]*(?:por favor,? |per favore,? |bitte |please )?(?:olvídalo|olvidalo|bórralo|borralo|elimínalo|eliminalo|(?:oublie|supprime|efface)(?:z)?-(?:le|la|les)|cancellalo|dimenticalo|eliminalo|rimuovilo|apague-o|apaga-o|esqueça-o|esquece-o|忘れて(?:ください)?|消して(?:ください)?|删掉|忘了吧|忘掉吧|忘掉|잊어 ?줘|지워 ?줘|삭제해 ?줘|удали|забудь|usuń|zapomnij|sil|unut|احذفه|امسحه|इसे हटा दो|इसे भूल जाओ)(?:,? (?:por favor|per favore|s'il te plaît|stp|пожалуйста|proszę|lütfen))?\W*\Z"
)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A request in another language; the object's span is in characters of ``Sentence.plain``."""

    language: str
    object_start: int
    object_end: int
    scope: str
    targets: tuple[Target, ...]
    pronoun: bool
    total: bool


def find_foreign(sentence: Sentence, message: str) -> Foreign | None:
    """Find the request that a sentence makes in a language other than English, if any."""
    text = sentence.plain
    if _CLITIC.match(text):
        return Foreign(_clitic_language(text), 0, len(text), "vague", (), pronoun=True, total=False)
    for code, shapes in _LANGUAGES.items():
        if code == "zh" and _KANA.search(text):
            continue
        for shape in shapes:
            found = shape.match(text)
            if found:
                return _understand(code, found, sentence, message)
    return None


def _clitic_language(text: str) -> str:
    """Guess the language by its alphabet; Spanish stands for all that are written in Latin."""
    for code, letters in (
        ("ja", "[\u3041-\u30ff]"),
        ("ko", "[\uac00-\ud7a3]"),
        ("zh", "[\u4e00-\u9fff]"),
        ("ru", "[а-яё]"),
        ("ar", "[\u0600-\u06ff]"),
        ("hi", "[\u0900-\u097f]"),
    ):
        if re.search(letters, text):
            return code
    return "es"


def _understand(
    code: str, found: re.Match[str], sentence: Sentence, message: str
) -> Foreign | None:
    start, end = found.span("obj")
    other = _OTHER_CLAUSE.search(sentence.plain, start, end)
    end = other.start() if other else end
    tail = _END.search(sentence.plain, start, end)
    while tail and tail.start() > start:
        end = tail.start()
        tail = _END.search(sentence.plain, start, end)
    thing = sentence.plain[start:end].strip(" \n\r\t,.!?。！？؟:;")
    if not thing or _NEGATED.match(thing) or _TASK.search(thing) or _GENERIC.match(thing):
        return None
    if code in {"zh", "ja", "ko", "hi"} and _ASKS_HOW.search(sentence.plain):
        return None
    start = sentence.plain.index(thing, start)
    end = start + len(thing)
    shown = message[sentence.start + start : sentence.start + end]
    scope, targets = _targets(code, shown, thing, first=start)
    return Foreign(
        code, start, end, scope, targets, bool(_PRONOUN.match(thing)), scope == "all"
    )  # fmt: skip


def _targets(code: str, shown: str, thing: str, *, first: int) -> tuple[str, tuple[Target, ...]]:
    shaped = _shaped(shown, thing)
    if shaped:
        return shaped
    wrapped = _WRAPPER.match(thing)
    if wrapped and wrapped.end() < len(thing):
        shown, thing = shown[wrapped.end() :], thing[wrapped.end() :]
    that = _THAT.match(thing)
    text = shown[that.end() :].strip() if that else shown
    if that or _is_statement(code, thing):
        return "fact", (Target("meaning", text), *_values(text))
    if VALUE.fullmatch(text):
        return "entity", (Target("value", text),)
    scope = "entity" if first > 0 and _NAME.fullmatch(text) else "topic"
    return scope, (Target("description", text), *_values(text))


def _shaped(shown: str, thing: str) -> tuple[str, tuple[Target, ...]] | None:
    """Scope and targets of an object with a shape of its own: a number, a quotation, the thread."""
    number = _MESSAGE_NUMBER.search(thing)
    if number:
        return "message_id", (Target("ids", shown, ids=(int(number[1] or number[2]),)),)
    if MASK in thing:
        quote = shown[thing.index(MASK) : thing.rindex(MASK) + 1].strip("\"'“”„«»‘’「」『』` ‹›")
        return "quoted", (Target("quote", quote),)
    if _THREAD.search(thing):
        return "session", (Target("thread", shown),)
    if _is_total(thing):
        return "all", (Target("everything"),)
    if _NEWEST.search(thing) and len(thing) < 60:
        return "last", (Target("last", count=1),)
    return None


def _values(text: str) -> tuple[Target, ...]:
    return tuple(Target("value", found.group().strip(" -/().")) for found in VALUE.finditer(text))


def _is_total(thing: str) -> bool:
    if re.fullmatch(rf"{_ALL_WORD}(?:を|は|을|를|को)?", thing):
        return True
    return bool(_ABOUT_ME.search(thing)) and bool(re.search(_ALL_WORD, thing))


def _is_statement(code: str, thing: str) -> bool:
    if code == "zh":
        return bool(re.match(r"我(?!的|们的|家的)|他(?!的)|她(?!的)", thing))
    if code == "ja":
        return bool(re.search(r"(?:こと|の)\Z", thing)) and "の" not in thing[:3]
    if code == "ko":
        return bool(re.search(r"(?:것|거|사실|다고|다는)\Z", thing))
    if code == "hi":
        return bool(re.search(r"(?:है|हूँ|हूं|हैं|था|थी)\Z", thing))
    return code == "tr" and bool(
        re.search(r"(?:dığımı|diğimi|duğumu|düğümü|tığımı|tiğimi|tuğumu|tüğümü)\Z", thing)
    )
