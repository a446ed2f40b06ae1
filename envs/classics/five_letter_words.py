"""Common English words of five letters, for Wordle."""

WORDS = tuple(
    """
    about above actor admit adopt adult after again agent agree ahead alarm album alert alike alive allow alone along
    alter among anger angle angry apart apple apply arena argue arise armed array arrow aside asset avoid award aware
    bacon badge baker basic basin basis batch beach beard beast begin being belly below bench berry birth black blade
    blame blank blast blaze bleed blend bless blind block blood bloom board boast bonus boost booth bound brain brake
    brand brass brave bread break breed brick bride brief bring broad broom brown brush buddy build bunch burst buyer
    cabin cable camel canal candy cargo carry carve catch cause chain chair chalk charm chart chase cheap check cheek
    cheer chess chest chief child chill choir chord civic civil claim clash class clean clear clerk click cliff climb
    clock clone close cloth cloud clown coach coast cocoa color comet comic coral couch count court cover crack craft
    crane crash crawl crazy cream creek crime crisp cross crowd crown cruel crumb crust curve cycle daily dairy dance
    dealt death debut delay dense depth devil diary dirty ditch dizzy donor doubt dozen draft drain drama dream dress
    drift drill drink drive drown eager eagle early earth eight elbow elder elect elite empty enemy enjoy enter entry
    equal error essay event every exact exist extra fable faint fairy faith false fancy fatal fault favor feast fence
    ferry fever fiber field fifth fifty fight final first flame flash fleet flesh float flock flood floor flour fluid
    flute focus force forge forty forum found frame fraud fresh front frost fruit funny ghost giant given glass globe
    glory glove grace grade grain grand grant grape graph grasp grass grave great green greet grief grill groom group
    grove guard guess guest guide habit happy harsh haste heart heavy hedge hello honey honor horse hotel house human
    humor hurry ideal image imply index inner input irony ivory jelly jewel joint jolly judge juice knife knock label
    labor large laser later laugh layer learn lease least leave legal lemon level lever light limit linen liver lobby
    local lodge logic loose lower loyal lucky lunch magic major maker maple march marry marsh match mayor medal media
    melon mercy merge merit merry metal meter minor model money month moral motor mount mouse mouth movie music naked
    nasty naval nerve never newly night noble noise north novel nurse ocean offer often olive onion opera orbit order
    organ other outer owner paint panel panic paper party pasta patch pause peace pearl pedal penny phase phone photo
    piano piece pilot pinch pizza place plain plane plant plate plaza point polar pound power press price pride prime
    print prior prize proof proud prove pulse punch pupil purse queen query quest quick quiet quilt quite quota radar
    radio raise rally ranch range rapid ratio reach react ready realm rebel refer reign relax reply rider ridge rifle
    right rigid rinse risky rival river roast robot rocky rough round route royal rugby ruler rural sadly saint salad
    sauce scale scarf scene scent scope score scout screw sense serve seven shade shaft shake shape share shark sharp
    sheep sheet shelf shell shift shine shirt shock shore short shout shrug sight silly since skill skirt skull sleep
    slice slide slope small smart smell smile smoke snack snake sober solar solid solve sorry sound south space spare
    speak speed spell spend spice spine split spoon sport spray squad stack staff stage stain stair stake stamp stand
    stare start state steak steal steam steel steep steer stick stiff still sting stone stool store storm story stove
    straw strip study stuff style sugar suite sunny super swamp swear sweat sweep sweet swift swing sword table taste
    teach tempo thank theme thick thief thing think third thorn those three throw thumb tiger tight timer tired title
    toast today token tooth topic torch total touch tough tower toxic trace track trade trail train treat trend trial
    tribe trick truck truly trunk trust truth tulip tutor twice twist ultra uncle under union unite unity until upper
    upset urban usage usual valid value valve vapor vault venue verse video virus visit vital vivid vocal voice voter
    wagon waist waste watch water weary weave wheat wheel where while white widow width woman world worry worth wound
    wrist write wrong yacht yield young youth zebra
    """.split()
)
